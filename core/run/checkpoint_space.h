#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/config/experiment.h"

namespace forge::run {

/// Bytes of a checkpoint of forge's own backend: weights and the optimizer's state. 0 for another
/// backend, whose files only it knows.
int64_t checkpoint_bytes(const config::Experiment& experiment);

/// Asks before the first step whether the disk has room for what the run will save. Throws Error
/// (exit code 4) where not even one checkpoint fits. Returns a warning where fewer fit than the run
/// keeps, with the one that is being written; "" where all do. `folder` is the run's; checkpoints
/// that it has already count as room taken.
std::string check_checkpoint_space(const std::filesystem::path& folder,
                                   const config::Experiment& experiment);

}  // namespace forge::run
