#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/run/run_folder.h"

namespace forge::upkeep {

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

}  // namespace forge::upkeep
