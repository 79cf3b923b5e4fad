#pragma once

#include <filesystem>
#include <string>

#include "core/config/experiment.h"

namespace forge::run {

/// Asks before the first step whether the disk has room for what the run will save. Throws Error
/// (exit code 4) where not even one checkpoint fits. Returns a warning where fewer fit than the run
/// keeps, with the one that is being written; "" where all do, and for another backend than forge's
/// own. `folder` is the run's; checkpoints that it has already count as room taken.
std::string check_checkpoint_space(const std::filesystem::path& folder,
                                   const config::Experiment& experiment);

}  // namespace forge::run
