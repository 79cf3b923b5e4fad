#pragma once

#include <filesystem>
#include <string>

/// How a workspace is known again that was moved, copied or mounted elsewhere.
namespace forge::project {

/// Where a workspace has its id: .local/id of its settings. Git leaves it alone, and it names its
/// folder's place on the disk and the workspace's path: a clone or a copy is another workspace.
std::filesystem::path workspace_id_file(const std::filesystem::path& root);

/// The hex digits there, which a workspace keeps where it is moved or mounted elsewhere. "" where
/// it has none, as a copy, or they cannot be read.
std::string workspace_id(const std::filesystem::path& root);

/// The id; a workspace that has none is given one. "" where that cannot be written.
std::string made_workspace_id(const std::filesystem::path& root);

/// The workspace that something was made in: its root at that time, and its id; "" where they are
/// not known.
struct RecordedWorkspace {
  std::string root, id;
};

/// What it is to the workspace at `root`.
enum class WorkspaceRelation {
  same,     ///< it has the same id or path, or no path is recorded
  another,  ///< its project at `project` is to be seen elsewhere, or this user cannot look for it
  away,     ///< not there: moved, removed, not mounted, or on another machine
  copied    ///< the same, and that at `root` is a copy of it, as one is that was moved to a disk:
            ///< its runs are those of both
};
WorkspaceRelation relation_of(const RecordedWorkspace& recorded,
                              const std::filesystem::path& root,
                              const std::string& project);

/// Whether it is not there now: away or copied.
bool is_gone(WorkspaceRelation relation);

}  // namespace forge::project
