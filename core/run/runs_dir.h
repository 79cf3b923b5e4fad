#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/run_folder.h"

/// The folder in which the runs of a workspace lie side by side.
namespace forge::run {

/// The folder of run folders, absolute: FORGE_RUNS_DIR, else `workspace_root`/runs if it is there
/// or forge can make it, else ./runs (shipped projects of an installed forge are read-only). Makes
/// nothing. Throws Error for a path with control characters.
std::filesystem::path runs_dir(const std::filesystem::path& workspace_root);

/// Makes the folder: who begins a run, imports one or measures does so, and nobody else. Throws
/// Error (exit code `failed`) if runs cannot be written to it.
void make_runs_dir(const std::filesystem::path& runs_dir);

/// Whether files can be made in the folder: its rights and its file system allow it.
bool can_write(const std::filesystem::path& folder);

/// Throws Error where the folder is not there. Its runs are where it was moved to: whoever has
/// found runs in it must not go on in a new one.
void require_runs_dir(const std::filesystem::path& runs_dir);

/// Holds a folder for each removal, with the runs that it moved there.
std::filesystem::path trash_folder(const std::filesystem::path& runs_dir);

/// Throws Error where this user may not list a runs folder: it is not empty for that.
void require_listed(const std::filesystem::path& runs_dir);

/// Every run folder (one that holds run.json) directly below `runs_dir`, sorted by name. Throws
/// Error where it cannot be listed.
std::vector<RunFolder> list_runs(const std::filesystem::path& runs_dir);

/// The run of that id, or the only one whose id begins so; none if there is none. Throws Error with
/// the candidates if there are several, and where that id is a link.
std::optional<RunFolder> find_run(const std::filesystem::path& runs_dir, const std::string& id);

}  // namespace forge::run
