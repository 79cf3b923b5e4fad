#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/worker/process_settings.h"

namespace forge::queue {

/// Environment variables by their names.
using Environment = std::map<std::string, std::string>;

/// In what a command's runs are started, whoever starts them.
struct KeptEnvironment {
  Environment variables;
  worker::ProcessSettings settings;
};

/// Where the environments of this host's runs of a queue are kept. That is in the user's cache, and
/// not beside the queue: a runs folder may come from anybody, and variables decide what a program
/// does.
std::filesystem::path environments_folder(const std::filesystem::path& queue_folder);

/// Keeps this process's environment for the runs of a group, unless one is kept for it: its
/// variables and what else it passes on to processes that it starts. Only the user may read the
/// file: variables may be secrets. A group whose name cannot be that of a file has none, nor has
/// any where the cache cannot be written. `queue_folder` is a queue's.
void keep_own_environment(const std::filesystem::path& queue_folder, const std::string& group);

/// What this user has kept for the group on this machine; none where nothing was, or it cannot be
/// read.
std::optional<KeptEnvironment> kept_environment(const std::filesystem::path& queue_folder,
                                                const std::string& group);

/// This process's environment with the numerics variables of another command in place of its own.
/// Of these only what chooses a CPU's instructions or the precision of products is believed: an
/// entry of the queue may come from anybody.
Environment own_environment_with(const Environment& numerics_variables);

/// Removes what is kept for groups of which `is_needed` says no. To be called while the queue is
/// locked.
void forget_environments(const std::filesystem::path& queue_folder,
                         const std::function<bool(const std::string& group)>& is_needed);

}  // namespace forge::queue
