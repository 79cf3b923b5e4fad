#pragma once

#include <filesystem>
#include <string>

#include "core/config/check.h"
#include "core/config/layers.h"

namespace forge::config {

/// How the path of a file begins that lies where `forge data get` puts it.
constexpr const char* corpora_prefix = "corpora:";

/// A path as meant where it was written, absolute; "~/" is the user's home, "corpora:" the folder
/// of the public texts that were got.
std::filesystem::path meant_path(const Setting& setting,
                                 const std::string& path,
                                 const PathBases& bases);

/// Whether the name is that of JSON lines, compressed or not.
bool is_json_lines(const std::filesystem::path& path);

/// Makes the path of a key absolute; an empty one stays. Throws Error at the place that set it
/// where there is no such file or it must not be read.
void complete_path(Draft& draft, const std::string& key, std::string& path, const PathBases& bases);

}  // namespace forge::config
