#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forge::tables {

/// Columns that UTF-8 text takes on a terminal: wide characters two, combining ones none. Bytes
/// that are no UTF-8 count as one each.
int display_width(std::string_view text);

/// The text without control characters and invalid bytes: a worker's words must not steer the
/// terminal. A tab or line break becomes a space.
std::string printable(std::string_view text);

/// The text followed or led by spaces up to `width` columns.
std::string pad_right(const std::string& text, int width);
std::string pad_left(const std::string& text, int width);

/// Lines of at most `width` columns, broken at spaces; a longer word stands alone and whole.
std::vector<std::string> wrap(std::string_view text, int width);

}  // namespace forge::tables
