#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/run_folder.h"
#include "core/upkeep/data_needs.h"

namespace forge::upkeep {

struct TakenIn {
  run::RunFolder folder;
  bool made = false;               ///< false: this very run was here before
  std::vector<std::string> notes;  ///< what was left out or does not fit
  std::vector<DataNeed> missing;   ///< data that is not here
};

/// Takes a run in from another runs folder, or from a pack (a file, or its folder unpacked). What
/// is taken in is not trusted: files of a run alone are copied, no links; the run's key must be
/// that of its identity, every file of a pack must have the size and hash that pack.json says, and
/// a damaged checkpoint is left out. Never replaces anything. Throws Error where there is a run of
/// that name which is another, where the run is still running, and for what is no run.
TakenIn take_in_run(const std::filesystem::path& origin, const std::filesystem::path& runs_dir);

}  // namespace forge::upkeep
