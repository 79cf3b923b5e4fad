#pragma once

#include <filesystem>

namespace forge::run {

/// The folder that holds the run folders, absolute: FORGE_RUNS_DIR where that is set, else
/// `workspace_root`/runs where that is or could be made writable, else ./runs (shipped projects of
/// an installed forge are read-only). Makes nothing.
std::filesystem::path runs_dir(const std::filesystem::path& workspace_root);

/// Makes the folder where it is missing; throws Error (exit code `failed`) with path, reason and
/// what to do when runs cannot be written to it.
void make_runs_dir(const std::filesystem::path& runs_dir);

}  // namespace forge::run
