#pragma once

#include <filesystem>
#include <string>

/// What tells a runs folder from others that hosts or containers have under the same path: a random
/// word in its file `.queue/id`.
namespace forge::run {

/// "" where it has none, or it cannot be read. A folder may come from anybody, and with any word.
std::string folder_id(const std::filesystem::path& runs_dir);

/// The same; one that has none is given one. "" where that cannot be written.
std::string made_folder_id(const std::filesystem::path& runs_dir);

}  // namespace forge::run
