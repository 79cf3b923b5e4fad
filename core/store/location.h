#pragma once

#include <cstdint>
#include <filesystem>

namespace forge::store {

/// Whether a file system of this type (f_type of statfs) lies on other machines or reaches the disk
/// through another program. SQLite's write-ahead log needs shared memory and locks that such file
/// systems do not give.
bool is_remote_file_system(int64_t type);

/// Where the index over the runs of `runs_dir` is kept: `runs_dir`/forge.sqlite, or a file of the
/// user's cache folder when `runs_dir` is on a remote file system or cannot be written.
std::filesystem::path store_path(const std::filesystem::path& runs_dir);

/// The file of the user's cache folder for `runs_dir`.
std::filesystem::path cached_store_path(const std::filesystem::path& runs_dir);

}  // namespace forge::store
