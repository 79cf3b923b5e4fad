#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/identity.h"
#include "core/run/open_model.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::run {

/// A checkpoint of another run that a new run continues.
struct ContinueFrom {
  std::filesystem::path checkpoint;  ///< a folder of the other run's, "": it begins by itself
  std::filesystem::path events;      ///< the other run's
  int64_t step = 0;                  ///< of the checkpoint
  int64_t log_every = 1;             ///< the other run's train.log_every
};

/// The newest whole checkpoint of `other` from which a run of that identity, with that complete
/// config, goes on exactly as if it had begun there itself: the longer or shorter budget is the
/// only thing that may differ, and the schedule has to give every step done the rate that it had
/// (config::check_resumable). Throws Error saying what stands against it.
ContinueFrom find_continue_checkpoint(const RunFolder& other,
                                      const Identity& identity,
                                      const nlohmann::json& experiment);

/// Those of the other run's events that are numbers of the steps before the checkpoint, as lines of
/// events.jsonl: attempt 0 of the run that goes on. Without those of a window that its end cut
/// short.
std::string copied_metrics(const ContinueFrom& from);

/// All that a run is made of, before it has a folder.
struct RunInputs {
  std::string project;        ///< path of the project below the workspace
  std::string config;         ///< name of the config
  std::string command;        ///< as typed
  std::string revision;       ///< git commit of the workspace, ""
  nlohmann::json experiment;  ///< resolved, complete
  nlohmann::json origins;     ///< who set each value
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::filesystem::path tokenizer;  ///< tokenizer.json, of which the run folder gets a copy
  InitialWeights initial_weights;
  ContinueFrom continue_from;  ///< of a new run; one that has checkpoints goes on from its own
  std::vector<worker::TokenSource> train_tokens;
  std::vector<worker::TokenSource> evaluation_tokens;
  std::vector<worker::TokenSource> validation_tokens;
  std::string device = "auto";  ///< as chosen by the user; "auto": what the worker chose
  worker::BackendInfo backend;  ///< what the worker said it would run on
};

enum class Action {
  start,    ///< there is no such run
  resume,   ///< it began before and neither runs nor is completed
  running,  ///< a supervisor has it
  cached,   ///< it is completed: its numbers are there
};

/// "new", "resumes", "running", "cached".
const std::string& name_of(Action action);

struct PlannedRun {
  RunRecord record;
  RunFolder folder;
  Action action = Action::start;
};

/// Where the run of these inputs lies and what is left to do for it. `force` plans a fresh run with
/// the first free suffix "-2", "-3", … when there is one already; without it the run with the
/// highest suffix is the one that counts. Writes nothing.
PlannedRun plan_run(const RunInputs& inputs, const std::filesystem::path& runs_dir, bool force);

/// Writes what the supervisor needs: for a new run its folder (aside, then renamed: there is never
/// half a folder), for one that began before a fresh request.json, because token files may have
/// moved. Throws Error when it cannot be written.
void write_run_folder(const PlannedRun& planned, const RunInputs& inputs);

/// A run of a plan, resolved: all that decides what it computes.
struct SavedRun {
  std::string label;  ///< what to call it
  std::string project;
  std::string config;
  std::string id;             ///< of the run that it is or would become
  std::string revision;       ///< git commit of the workspace, ""
  nlohmann::json experiment;  ///< resolved, complete
  nlohmann::json origins;     ///< who set each value
  Identity identity;
};

/// A plan of runs, to be looked at, kept, and executed as it is, whatever becomes of the templates
/// that it was made from.
struct SavedPlan {
  std::string created;  ///< UTC
  std::string command;  ///< that made it, as typed
  std::string device = "auto";
  int threads = 0;           ///< 0: all cores
  std::string continue_run;  ///< of --continue, ""
  std::vector<SavedRun> runs;
};

/// Writes the plan aside and renames it. Throws Error where that fails.
void write_plan(const std::filesystem::path& file, const SavedPlan& plan);

/// Throws Error for what is no such file, or of another version.
SavedPlan read_plan(const std::filesystem::path& file);

/// The run as the plan has it, under the id that it has there: executed twice, a plan is done once.
/// Throws Error, which names the differences, where these inputs would make another run: the data,
/// the backend or the device are no longer those of the plan.
PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir);

}  // namespace forge::run
