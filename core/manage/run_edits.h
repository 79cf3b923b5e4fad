#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/run/queue/queue.h"
#include "core/run/run_folder.h"

namespace forge::manage {

/// Takes the lock of a run that is not running, so that nobody starts it. Throws Error where it is
/// running or waits in the queue; `consequence` ends the message: "its files still change". `queue`
/// is that of the run's folder: while it is locked nothing is started from it.
FileLock lock_idle_run(const queue::Queue& queue,
                       const run::RunFolder& folder,
                       const std::string& consequence);

/// Bytes of all files below a path, or of the file that it is. Links count as themselves.
int64_t tree_bytes(const fs::path& path);

/// Whether a name is that of a folder directly below another: no separator, no "." in front.
bool is_plain_name(const std::string& name);

/// Changes a run's notes and tags and returns the new ones. Concurrent changes are all kept. The
/// run may be running.
run::Remarks edit_annotations(const run::RunFolder& folder,
                              const std::function<void(run::Remarks&)>& change);

/// Runs that were removed lie in .trash of the runs folder until they are brought back or the
/// garbage is collected:
///
///     .trash/<time>/removed.json    a Removal
///     .trash/<time>/<run>/          the folder as it was

struct RemovedRun {
  std::string run;  ///< id
  std::string config;
  std::string status;
  int64_t bytes = 0;
};

/// One command's removal.
struct Removal {
  std::string name;     ///< of its folder: "20261122T001500Z"
  std::string removed;  ///< UTC
  std::string command;  ///< as typed
  std::vector<RemovedRun> runs;
};
nlohmann::json to_json(const Removal& removal);

/// Moves runs into the trash, all of them or none. Throws Error where one of them runs or waits in
/// the queue, or is no run directly below `runs_dir`.
Removal remove_runs(const std::filesystem::path& runs_dir,
                    const std::vector<run::RunFolder>& runs,
                    const std::string& command);

/// What lies in the trash, the newest removal first. Only what is really there is listed.
std::vector<Removal> list_removals(const std::filesystem::path& runs_dir);

/// Brings the runs of a removal back, "": of the newest; all of them or none. Throws Error where
/// there is none such, or a run of one's name has been made since.
Removal undo_removal(const std::filesystem::path& runs_dir, const std::string& name);

std::filesystem::path trash_folder(const std::filesystem::path& runs_dir);

}  // namespace forge::manage
