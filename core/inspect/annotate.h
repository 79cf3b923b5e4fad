#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/templating/render.h"

namespace forge::inspect {

/// A line of a rendered text with the template line that wrote what it begins with.
struct AnnotatedLine {
  std::string text;
  std::string place;  ///< "file:line (inline NAME)", "" for a blank line
};

/// The lines of a rendered text; files are named relative to `here`.
std::vector<AnnotatedLine> annotate(const templating::RenderedText& rendered,
                                    const std::filesystem::path& here);

/// [{"line", "text", "origins": [{"at": column of the text, "file", "line", "column", "inline"?,
/// "via": [...]}, …]}, …]: every stretch of every line with who wrote it and by which chain of
/// extends, includes and imports it was reached.
nlohmann::ordered_json lines_to_json(const templating::RenderedText& rendered);

}  // namespace forge::inspect
