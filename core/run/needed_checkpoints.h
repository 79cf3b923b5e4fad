#pragma once

#include <filesystem>
#include <vector>

#include "core/run/run_folder.h"

namespace forge::run {

/// A checkpoint of a run from which another one begins (train.initial_weights, --continue).
struct NeededCheckpoint {
  RunFolder run;  ///< that begins from it
  std::filesystem::path checkpoint;
  /// The mark that alone says so, as the run cannot be looked at now; "": the run itself says so.
  std::filesystem::path mark = {};

  RunFolder origin() const;  ///< the run that it is a checkpoint of
  /// Whether the run may still begin there: it has no checkpoint of its own that it would go on
  /// from. Reads the checkpoints that it has. Of one that cannot be looked at it is not known.
  bool is_needed() const;
};

/// What a run names; nothing once it is completed. A run whose request cannot be read cannot begin
/// as it is, and names nothing.
std::vector<NeededCheckpoint> needed_checkpoints(const RunFolder& run);

/// What the runs of a runs folder name, and those that are marked in it. A marked run that cannot
/// be looked at (another user's, or in a runs folder that is not mounted) names what its mark
/// names.
std::vector<NeededCheckpoint> needed_checkpoints(const std::filesystem::path& runs_dir);

/// Marks the run in the runs folders that it names checkpoints of, so that nobody removes them
/// there while it is not completed. In its own one only where its files' rights keep some users
/// from reading it. One that cannot be written stays without the mark. Marks of completed runs are
/// removed there.
void mark_needed(const RunFolder& run);

/// Removes the marks of a run that is completed.
void remove_marks(const RunFolder& run);

/// Of a run that is to be brought to another machine: what it begins from and does not hold, and
/// how that is brought there, too. "" where it begins from nothing else. `only_missing`: of what is
/// not here.
std::string needed_text(const RunFolder& run, bool only_missing);

/// Whether an unfinished run of the runs folder still needs the checkpoint. It stays then, though
/// its own run would keep others.
bool is_needed(const std::filesystem::path& checkpoint, const std::filesystem::path& runs_dir);

}  // namespace forge::run
