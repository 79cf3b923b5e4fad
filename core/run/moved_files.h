#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/project/workspace_id.h"
#include "core/run/run_folder.h"

/// The files that a run names, where its workspace, its project or the runs folder was moved since.
namespace forge::run {

/// A folder, and where it may be now.
struct MovedFolder {
  std::filesystem::path from, to;
  bool is_replaced = false;  ///< what is at `from` now is another one's
};

/// The path, if something of its own is there or nowhere else; otherwise the same place below the
/// first of the folders' new places that has it.
std::filesystem::path find_moved(const std::filesystem::path& path,
                                 const std::vector<MovedFolder>& moved);

/// A resolved config, naming its files where they are now. Whoever uses them compares what they
/// hold with the run's identity.
nlohmann::json find_moved_files(nlohmann::json config, const std::vector<MovedFolder>& moved);

/// Writes into the run's records where its files are now, if they are not any more where the
/// records say: `config` is the run's, as it can be used now, `workspace` the root of the one that
/// the run belongs to, "" where none is known. `is_replaced`: what is where the records say is
/// another workspace's. The records stay of a folder that cannot be written or is another user's,
/// and of another workspace's run what they say of files in that one.
void remember_places(const RunFolder& folder,
                     const nlohmann::json& config,
                     const std::string& workspace,
                     bool is_replaced = false);

/// Where the workspace of a run is now that was moved with its runs folder: `run_dir`, the run's
/// folder as its request has it, lay in it. "": it was not moved, or nothing tells where.
std::string moved_workspace(const RunFolder& folder,
                            const RunRecord& record,
                            const std::string& run_dir);

/// The workspace that a run belongs to, as its record has it or, where it was moved with its runs
/// folder, where it is now.
project::RecordedWorkspace workspace_of(const RunFolder& folder, const RunRecord& record);

/// Whether a run is another workspace's, by what the recorded one, of that id, is to this one. Of
/// one that is away this user's runs are not: it was moved, or made anew. Another user's are, since
/// it may be on another machine; where no id was recorded they are not.
bool is_anothers_run(const RunFolder& folder,
                     project::WorkspaceRelation relation,
                     const std::string& workspace_id);

/// Whether a run is of the project at `project` below that root of a workspace, wherever the two
/// were when it was made.
bool is_of_project(const RunFolder& folder,
                   const RunRecord& record,
                   const std::string& workspace_root,
                   const std::string& project);

/// Throws Error where the workspace was moved, and the command of the run would be started in a
/// folder of the workspace that is at its old place.
void require_own_workspace(const RunFolder& folder,
                           const RunRecord& record,
                           const std::string& run_dir,
                           const config::ExternalConfig& external);

}  // namespace forge::run
