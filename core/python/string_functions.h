#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge::python {

/// Text functions that methods and filters share; each does what Python's str method of the name
/// does (lengths and indices in code points).

/// Where the text lies without leading and trailing `characters` (white space where there are
/// none).
struct Extent {
  size_t begin, size;
};
Extent strip_extent(std::string_view text,
                    const std::optional<std::string>& characters = {},
                    bool left = true,
                    bool right = true);

/// At most `limit` replacements; all when negative.
std::string replace(std::string_view text,
                    std::string_view old,
                    std::string_view fresh,
                    int64_t limit);
std::string pad(std::string_view text, char align, size_t width, std::string_view fill = " ");
/// The text with every CR LF and every other CR as LF.
std::string with_line_feeds(std::string text);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
/// Without a separator it splits at white space; a negative limit means no limit.
std::vector<std::string> split_text(std::string_view text,
                                    const std::optional<std::string>& separator = {},
                                    int64_t limit = -1,
                                    bool from_right = false);
struct WrapOptions {
  int64_t width = 79;            ///< in characters, at least 1
  bool break_long_words = true;  ///< what is longer than a line is cut
  bool break_on_hyphens = true;  ///< a line may end behind a hyphen
};

/// The lines of a text (which has no line breaks), as Python's textwrap.wrap makes them.
std::vector<std::string> wrap_words(std::string_view text, const WrapOptions& options);

}  // namespace forge::python
