#pragma once

#include <filesystem>
#include <string>

namespace forge::fetch {

/// Writes the file `member` of a zip archive (stored or deflated, without zip64) to `target`, aside
/// and then renamed. Throws Error where the archive is damaged or has no such file.
void extract(const std::filesystem::path& archive,
             const std::string& member,
             const std::filesystem::path& target);

}  // namespace forge::fetch
