#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace forge::project {

/// A folder that holds forge_workspace/ (or forgather_workspace/), with projects anywhere below.
struct Workspace {
  std::filesystem::path root;      ///< absolute
  std::filesystem::path settings;  ///< its forge_workspace/ or forgather_workspace/
  std::string default_project;     ///< path below the root, "" where none is declared
  /// Installed with the program, or the source tree that the program was built in and called from
  /// elsewhere: nothing is written there.
  bool shipped = false;
};

/// The forge_workspace/ or forgather_workspace/ of a folder, if it has one.
std::optional<std::filesystem::path> settings_folder_of(const std::filesystem::path& folder);

/// The workspace of the nearest folder at or above `from` that is one. Throws Error where its
/// workspace.yaml is wrong, and where it belongs to another user who does not own `from`: a folder
/// above may be anybody's. FORGE_TRUSTED_WORKSPACES names those of others that may be used.
std::optional<Workspace> find_workspace(const std::filesystem::path& from);

/// The workspace to use: around `here`, else the one that came with the program: share/forge of an
/// installed <prefix>/bin/forge, else the source tree around a program that was only built.
/// Throws Error where there is none.
Workspace locate_workspace(const std::filesystem::path& here, const std::filesystem::path& program);

/// Whether the workspace came with the program and `here` is outside of it (Workspace::shipped).
bool is_shipped(const Workspace& workspace,
                const std::filesystem::path& here,
                const std::filesystem::path& program);

/// Folder of the templates that came with the program, "" where it finds none.
std::filesystem::path library_folder(const std::filesystem::path& program);

/// The folder as an absolute path without ".", ".." and a final slash, as all paths here are kept.
std::filesystem::path absolute_folder(const std::filesystem::path& folder);

/// Whether a path is the folder or lies below it, by their text alone.
bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Whether the folder is a project: it holds meta.yaml.
bool is_project_folder(const std::filesystem::path& folder);
/// The same, but true where this user may not look.
bool may_be_project_folder(const std::filesystem::path& folder);

/// The nearest project at or above `from` within the workspace.
std::optional<std::filesystem::path> enclosing_project_folder(const Workspace& workspace,
                                                              const std::filesystem::path& from);

/// A project's folder, absolute, with the workspace nearest above it.
struct ProjectFolder {
  std::filesystem::path folder;
  std::optional<Workspace> workspace;
};

/// Every project at or below a folder, sorted bytewise, those of workspaces within it too. Hidden
/// folders, builds, runs and output folders are not entered; links are not followed. Throws Error
/// where a workspace.yaml is wrong.
std::vector<ProjectFolder> projects_below(const std::filesystem::path& folder);

/// Those of the workspace itself, less those of workspaces within it.
std::vector<ProjectFolder> projects_of(const Workspace& workspace);

}  // namespace forge::project
