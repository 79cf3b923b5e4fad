#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/protocol/messages.h"
#include "core/run/backend.h"
#include "core/run/continuation.h"
#include "core/run/initial_weights.h"
#include "core/run/run_folder.h"

namespace forge::run {

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
  Continuation continuation;  ///< of a new run; one that has checkpoints goes on from its own
  std::vector<protocol::TokenSource> train_tokens;
  std::vector<protocol::TokenSource> evaluation_tokens;
  std::vector<protocol::TokenSource> selection_tokens;
  std::string device = "auto";  ///< as chosen by the user; "auto": what the worker chose
  BackendInfo backend;          ///< what the worker said it would run on
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

/// The same run under the id `id`, which is its own with or without a suffix as `force` gives one;
/// throws Error for another.
PlannedRun plan_under(const std::string& id,
                      const RunInputs& inputs,
                      const std::filesystem::path& runs_dir);

/// Writes what the supervisor needs: for a new run its folder (aside, then renamed: there is never
/// half a folder), for one that began before a fresh request.json, because token files may have
/// moved. Throws Error when it cannot be written.
void write_run_folder(const PlannedRun& planned, const RunInputs& inputs);

}  // namespace forge::run
