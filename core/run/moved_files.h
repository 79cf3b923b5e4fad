#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/run_folder.h"

/// The files that a run names, where its workspace, its project or the runs folder was moved since.
namespace forge::run {

/// A folder, and where it may be now.
struct MovedFolder {
  std::filesystem::path from, to;
};

/// The path, if something is there or nowhere else; otherwise the same place below the first of the
/// folders' new places that has it.
std::filesystem::path find_moved(const std::filesystem::path& path,
                                 const std::vector<MovedFolder>& moved);

/// A resolved config, naming its files where they are now. Whoever uses them compares what they
/// hold with the run's identity.
nlohmann::json find_moved_files(nlohmann::json config, const std::vector<MovedFolder>& moved);

/// Writes into the run's records where its files are now, if they are not any more where the
/// records say: `config` is the run's, as it can be used now, `workspace` the root of the one that
/// the run belongs to, "" where none is known. Of a folder that cannot be written the records stay.
void remember_places(const RunFolder& folder,
                     const nlohmann::json& config,
                     const std::string& workspace);

}  // namespace forge::run
