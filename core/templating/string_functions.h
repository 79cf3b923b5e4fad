#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/templating/traced_text.h"

namespace forge::templating {

/// Text functions that methods and filters share; each does what Python's str method of the name
/// does (lengths and indices in code points).

/// Where the text lies without leading and trailing `characters` (white space when null).
struct Extent {
  size_t begin, size;
};
Extent strip_extent(std::string_view text, const std::string* characters, bool left, bool right);

/// At most `limit` replacements; all when negative.
std::string replace(std::string_view text,
                    std::string_view old,
                    std::string_view fresh,
                    int64_t limit);
std::string pad(std::string_view text, char align, size_t width, std::string_view fill = " ");
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
/// A null separator splits at white space; a negative limit means no limit.
std::vector<std::string> split_text(std::string_view text,
                                    const std::string* separator,
                                    int64_t limit);
std::vector<std::string> split_text_from_right(std::string_view text,
                                               const std::string* separator,
                                               int64_t limit);
/// The `indent` filter: every line but the first (unless asked for) and the empty ones (likewise).
std::string indent(std::string_view text, std::string_view indentation, bool first, bool blank);

}  // namespace forge::templating
