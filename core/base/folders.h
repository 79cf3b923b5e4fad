#pragma once

#include <filesystem>
#include <system_error>
#include <vector>

namespace forge {

/// Paths of what lies directly in a folder that the user's work depends on, sorted. Empty where
/// there is no folder. Throws Error where it cannot be read: it would count as empty.
std::vector<std::filesystem::path> required_entries(const std::filesystem::path& folder);

/// Throws Error for what kept a folder from being read, unless it is not there.
void require_read(const std::filesystem::path& folder, const std::error_code& problem);

}  // namespace forge
