#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forge::jinja {

/// Where a line of preprocessed text came from.
struct LineOrigin {
  int line = 1;          ///< 1-based line of the original text
  int column_shift = 0;  ///< what to add to a column of the preprocessed line
  int length = 0;        ///< of the original line in bytes
};

struct PreprocessedText {
  std::string text;
  std::vector<LineOrigin> lines;  ///< one for each line of `text`
};

/// Turns Forgather's line syntax into plain Jinja: `##` comments go, `-- X`, `<< X`, `>> X` become
/// statements, `== X` and `=> X` print, `[name]` opens a block that the next header of the same or
/// a smaller indentation (or the end) closes.
PreprocessedText preprocess_lines(std::string_view text);

}  // namespace forge::jinja
