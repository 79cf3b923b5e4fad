#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace forge::queue {

/// Environment variables by their names.
using Environment = std::map<std::string, std::string>;

/// Keeps this process's environment for the runs of a group, unless one is kept for it. Only the
/// user may read the file: variables may be secrets. A group whose name cannot be that of a file
/// has none. `queue_folder` is a queue's. Throws Error where it cannot be written.
void keep_own_environment(const std::filesystem::path& queue_folder, const std::string& group);

/// What was kept for the group on this machine; none where nothing was, or it cannot be read.
std::optional<Environment> kept_environment(const std::filesystem::path& queue_folder,
                                            const std::string& group);

void forget_environment(const std::filesystem::path& queue_folder, const std::string& group);

}  // namespace forge::queue
