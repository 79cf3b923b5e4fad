#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/source.h"

namespace forge::inspect {

/// {"file", "line", "column", "inline"?, "via": [the same of each extends, include or import that
/// led there, nearest first]}; null for an unknown place.
nlohmann::ordered_json to_json(const SourceSpan& span);

/// "file:line", with " (inline NAME)" for an inline template; "" for an unknown place. The file is
/// named relative to `here`.
std::string line_of(const SourceSpan& span, const std::filesystem::path& here);

/// A text's file relative to a folder.
std::string relative_file(const SourceText& source, const std::filesystem::path& here);

}  // namespace forge::inspect
