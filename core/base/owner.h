#pragma once

#include <filesystem>
#include <string>

namespace forge {

/// The user who owns what stands at a path, "alice", or "user 1000" where the machine has no name
/// for them; "" where nothing can be seen there.
std::string owner_name(const std::filesystem::path& path);

}  // namespace forge
