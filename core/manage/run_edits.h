#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/progress.h"
#include "core/run/annotations.h"
#include "core/run/queue/queue.h"
#include "core/run/run_folder.h"

namespace forge::manage {

/// Takes the lock of an idle run, so that nobody starts it. Throws Error if it is running or waits
/// in the queue; `consequence` ends the message: "its files still change". `queue` is the locked
/// queue of the run's folder.
FileLock lock_idle_run(const queue::Queue& queue,
                       const run::RunFolder& folder,
                       const std::string& consequence);

/// Bytes of all files below a path, or of the file that it is. Links count as themselves.
int64_t tree_bytes(const fs::path& path);

/// Throws Error where the run's folder is gone, which a command had found.
void require_not_removed(const run::RunFolder& folder);

/// Changes a run's notes and tags and returns the new ones. Concurrent changes are all kept. The
/// run may be running.
run::Annotations edit_annotations(const run::RunFolder& folder,
                                  const std::function<void(run::Annotations&)>& change);

/// Removed runs stay in .trash of the runs folder until they are restored or collected:
///
///     .trash/<time>/removed.json    a Removal
///     .trash/<time>/<run>/          the folder as it was
///
/// On a full disk there is no removed.json, and <time> ends with "." and the sequence.

struct RemovedRun {
  std::string run;  ///< id
  std::string config;
  std::string status;
  int64_t bytes = 0;
};

/// One command's removal.
struct Removal {
  std::string name;      ///< of its folder: "20261122T001500Z"
  int64_t sequence = 0;  ///< larger than those in the trash before it; 0: of an older forge
  std::string removed;   ///< UTC
  std::string command;   ///< as typed
  std::vector<RemovedRun> runs;
};
nlohmann::json to_json(const Removal& removal);

/// Moves runs into the trash, all or none. Throws Error if one is running or queued, or is not a
/// run directly below `runs_dir`. A full disk does not hinder it, as long as a folder can be made.
/// `progress` counts the runs that were looked at, then those that were moved. What it throws moves
/// all back. Throws Error, too, where a run that is not completed starts from the weights of one of
/// them and has no checkpoint of its own yet, but with `even_if_needed`.
Removal remove_runs(const std::filesystem::path& runs_dir,
                    const std::vector<run::RunFolder>& runs,
                    const std::string& command,
                    const CountProgress& progress = {},
                    bool even_if_needed = false);

/// The removals in the trash, newest first, with the runs that are really there. Their sequence
/// tells which is newer, since a clock may be set back.
std::vector<Removal> list_removals(const std::filesystem::path& runs_dir);

/// Restores the runs of a removal ("": the newest), all or none. Throws Error for an unknown
/// removal, or if a run of the same name exists again. `progress` counts the runs that are moved.
Removal undo_removal(const std::filesystem::path& runs_dir,
                     const std::string& name,
                     const CountProgress& progress = {});

}  // namespace forge::manage
