#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/rows/evaluation_text.h"
#include "core/run/continue_from.h"
#include "core/run/identity.h"
#include "core/run/open_model.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::run {

struct SavedRun;

/// All that a run is made of, before it has a folder.
struct RunInputs {
  std::string project;                      ///< path of the project below the workspace
  std::string workspace;                    ///< its root
  std::string config;                       ///< name of the config
  std::string command;                      ///< as typed
  std::string revision;                     ///< git commit of the workspace, ""
  nlohmann::json experiment;                ///< resolved, complete
  nlohmann::json origins;                   ///< who set each value
  std::vector<int64_t> planned_seeds;       ///< with which the command trains the config
  std::vector<std::string> planned_claims;  ///< of the project's tables, about the config
  std::optional<std::map<std::string, std::string>> planned_tables =
      {};                           ///< those with a row of the config (RunRecord)
  std::string planned_config = {};  ///< of the config by itself (RunRecord)
  std::string drawn_order = {};     ///< RunRecord
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::filesystem::path tokenizer;  ///< tokenizer.json; the run folder gets a copy
  InitialWeights initial_weights;
  ContinueFrom continue_from;  ///< for a run that never began; others resume from their own
  std::vector<worker::TokenSource> train_tokens;
  std::vector<worker::TokenSource> evaluation_tokens;
  std::vector<worker::TokenSource> validation_tokens;
  data::EvaluationText evaluation_text;
  std::string device = "auto";  ///< as chosen by the user; "auto": what the worker chose
  worker::BackendInfo backend;  ///< from the worker
  std::string program;          ///< Identity::program
};

enum class Action {
  start,    ///< there is no such run
  resume,   ///< it has begun, and neither runs nor is completed
  running,  ///< it has a supervisor
  cached,   ///< it is completed
  damaged,  ///< its files cannot be taken for what they were: PlannedRun::problem
};

/// "new", "resumes", "running", "cached", "damaged".
const std::string& name_of(Action action);

struct PlannedRun {
  RunRecord record;
  RunFolder folder;
  Action action = Action::start;
  int attempt = 0;  ///< that had ended last when this was decided; 0: none, or one was active
  std::optional<Error> problem = {};  ///< of a damaged run: what is wrong, and what would mend it
  /// Id of the same run of a project whose folder is gone, where this one is new; "".
  std::string orphan = {};
  /// Id of the same run of another user whom this one may not read from, where this one is new; "".
  std::string closed = {};
};

/// The folder of the run of these inputs, and what is left to do for it. With `force` it is a new
/// run with the suffix "-2", "-3", … after the highest one, else the project's existing run with
/// the highest suffix: a run of another project or config, also of another workspace's that has the
/// same path, is not taken for it, since no table of this one would show it. `taken` are ids that
/// other runs of the same plan get: a/x and a_x have one name. Writes nothing.
PlannedRun plan_run(const RunInputs& inputs,
                    const std::filesystem::path& runs_dir,
                    bool force,
                    const std::vector<std::string>& taken = {});

/// Whether the planned run is still to begin from a checkpoint of `other`, which --continue names:
/// it has no folder, or one that never began and is not queued. False where it goes on from `other`
/// already. Throws Error where it began, or waits to begin, from something else.
bool begins_from(const PlannedRun& planned, const RunFolder& other);

/// In what the inputs differ from those that a run which runs, goes on or has not begun was asked
/// for with before: keys that change none of its numbers.
std::vector<IdentityDifference> changed_settings(const PlannedRun& planned,
                                                 const RunInputs& inputs);

/// Writes what the supervisor needs: the folder of a new run (aside, then renamed), or a fresh
/// request.json for one that has begun, because token files may have moved. One that has not begun
/// gets the config of these inputs, and begins from their checkpoint where they have one. Of a
/// completed run it writes where its files are, if they were moved. Returns whether it made the
/// folder. Throws Error if it cannot be written.
bool write_run_folder(const PlannedRun& planned, const RunInputs& inputs);

/// The run as the plan has it, under the plan's id: a plan that is executed twice runs once. Throws
/// Error with the differences if these inputs would make another run, because the data, the backend
/// or the device have changed, and where another config has got a run of that id since.
PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir);

}  // namespace forge::run
