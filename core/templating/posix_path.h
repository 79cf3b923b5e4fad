#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forge::templating {

/// Python's os.path on POSIX. Texts only: nothing is looked up on the disk.

/// An absolute part forgets those before it; nothing is normalised.
std::string join_path(const std::vector<std::string>& parts);
std::string normalize_path(const std::string& path);
std::string absolute_path(const std::string& path, const std::string& working_directory);
std::string relative_path(const std::string& path,
                          const std::string& start,
                          const std::string& working_directory);
std::string directory_name(const std::string& path);
std::string base_name(const std::string& path);
/// ("a/b", ".c") of "a/b.c"; leading dots of the file name begin no extension.
std::pair<std::string, std::string> split_extension(const std::string& path);

}  // namespace forge::templating
