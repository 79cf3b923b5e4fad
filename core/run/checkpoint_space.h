#pragma once

#include <filesystem>
#include <string>

#include "core/config/experiment.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// Asks before the first step whether the disk has room for what the run will save. Throws Error
/// (exit code 4) where not even one checkpoint fits. Returns a warning where fewer fit than the run
/// keeps, with the one that is being written; "" where all do, and for another backend than forge's
/// own. `folder` is the run's; checkpoints that it has already count as room taken.
std::string check_checkpoint_space(const std::filesystem::path& folder,
                                   const config::Experiment& experiment);

/// What is missing on the disk for a run to be started, with what it writes first and a checkpoint:
/// "a checkpoint takes 12 MB, and the disk of runs has 3 MB free"; "" where there is room, and
/// where nobody can say. The disk is only looked at.
std::string missing_room(const RunFolder& folder);

/// The same, and whether this user's quota of the disk has room for what the run writes first.
/// Throws Error (exit code 4) where something is missing, another one where the folder cannot be
/// written.
void require_room(const RunFolder& folder);

}  // namespace forge::run
