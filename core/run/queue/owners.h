#pragma once

#include <filesystem>
#include <string>

#include "core/run/run_folder.h"

/// Users who share a runs folder. A run that one of them has queued may be started by another one's
/// forge, where the rights of its files allow that. Where they do not, nobody but its owner can say
/// whether it runs, has ended or was removed: others leave its entry in the queue as it is.
namespace forge::queue {

/// The user who owns what stands at a path, "alice", or "user 1000" where the machine has no name
/// for them; "" where nothing can be seen there.
std::string owner_name(const std::filesystem::path& path);

/// Whether another user owns what stands at a path.
bool is_of_other_user(const std::filesystem::path& path);

/// Whether the rights of a path keep this user from it, of which `wanted` are those of access(2).
/// Nobody is kept from what is not there.
bool is_closed(const std::filesystem::path& path, int wanted);

/// The owner of a run of which this user may not read and write what its supervisor does; "" where
/// nothing stands in the way, and where there is no such folder.
std::string owner_of_closed(const run::RunFolder& folder);

}  // namespace forge::queue
