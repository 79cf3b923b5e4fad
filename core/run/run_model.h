#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/config/experiment.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// The run that a user means: the path of a run's folder, else as find_run finds it in `runs_dir`.
/// Throws Error naming near misses where there is none.
RunFolder named_run(const std::filesystem::path& runs_dir, const std::string& name);

/// The model of a run at one of its checkpoints, or of a model folder.
struct RunModel {
  std::string name;  ///< the run's id, or the name of the folder
  config::Experiment experiment;
  int64_t step = 0;
  std::filesystem::path checkpoint;   ///< its folder; weights::ModelFiles opens it
  std::filesystem::path tokenizer;    ///< tokenizer.json, "" where an imported run has none
  std::string tokenizer_fingerprint;  ///< "" where there is none
  std::string data_fingerprint;       ///< of the text that a run was trained on, "" for a folder
};

/// Reads what a run is made of. `step` names a checkpoint; without it the newest sound one is taken
/// (of which every byte is read). The tokenizer is the run folder's copy; a run older than those
/// copies may still find its own in the cache. Throws Error where the run has no such checkpoint.
RunModel open_run(const RunFolder& folder, std::optional<int64_t> step = std::nullopt);

}  // namespace forge::run
