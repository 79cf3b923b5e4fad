#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace forge::templating {

struct WrapOptions {
  int64_t width = 79;            ///< in characters, at least 1
  bool break_long_words = true;  ///< what is longer than a line is cut
  bool break_on_hyphens = true;  ///< a line may end behind a hyphen
};

/// The lines of a text (which has no line breaks), as Python's textwrap.wrap makes them.
std::vector<std::string> wrap_words(std::string_view text, const WrapOptions& options);

}  // namespace forge::templating
