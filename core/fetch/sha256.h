#pragma once

#include <filesystem>
#include <string>

#include "core/data/progress.h"

namespace forge::fetch {

/// SHA-256 of a file as 64 hexadecimal digits. Reports the phase "checking".
std::string sha256_of(const std::filesystem::path& path, const data::Progress& progress = {});

}  // namespace forge::fetch
