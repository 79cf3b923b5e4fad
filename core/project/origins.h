#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.h"
#include "core/jinja/render.h"

namespace forge::project {

/// {"file", "line", "column", "inline"?, "via": [the same of each extends, include or import that
/// led there, nearest first]}; null for an unknown place.
nlohmann::ordered_json to_json(const SourceSpan& span);

/// "file:line", with " (inline NAME)" for an inline template; "" for an unknown place. The file is
/// named relative to `here`.
std::string line_of(const SourceSpan& span, const std::filesystem::path& here);

/// A file relative to a folder.
std::string relative_file(const std::filesystem::path& file, const std::filesystem::path& here);

/// A line of a rendered text with the template line that wrote what it begins with.
struct AnnotatedLine {
  std::string text;
  std::string place;  ///< "file:line (inline NAME)", "" for a blank line
};

/// The lines of a rendered text; files are named relative to `here`.
std::vector<AnnotatedLine> annotate(const jinja::RenderedText& rendered,
                                    const std::filesystem::path& here);

/// [{"line", "text", "origins": [{"at": column of the text, "file", "line", "column", "inline"?,
/// "via": [...]}, …]}, …]: every stretch of every line with who wrote it and by which chain of
/// extends, includes and imports it was reached.
nlohmann::ordered_json lines_to_json(const jinja::RenderedText& rendered);

}  // namespace forge::project
