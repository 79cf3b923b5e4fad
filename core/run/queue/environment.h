#pragma once

#include <filesystem>
#include <functional>
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

/// Removes what is kept for groups of which `is_needed` says no. To be called while the queue is
/// locked.
void forget_environments(const std::filesystem::path& queue_folder,
                         const std::function<bool(const std::string& group)>& is_needed);

}  // namespace forge::queue
