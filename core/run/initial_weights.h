#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::run {

/// Weights of a run or of a model folder that a new run begins from (train.initial_weights).
struct InitialWeights {
  std::filesystem::path folder;       ///< a checkpoint's or the model's, "": they are drawn
  std::string hash;                   ///< weights::content_hash of the model's weights, or ""
  std::string tokenizer_fingerprint;  ///< that they were trained with, "" where that is not known
  std::vector<std::string> notes;     ///< in what the model they come from differs
};

/// Finds the weights that the config names, by the path of a model folder or as named_run finds
/// a run, and checks that they are those of `experiment.model`. Throws Error naming the key.
InitialWeights find_initial_weights(const config::Experiment& experiment,
                                    const std::filesystem::path& runs_dir);

}  // namespace forge::run
