#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace forge::jinja {
struct TemplateUse;
}

namespace forge::python {

/// A place in a template's preprocessed text. Python only compares the pointers.
struct Place {
  const jinja::TemplateUse* use = nullptr;
  uint32_t position = 0;
};

/// A text that knows which template wrote each part of it, through block inheritance, macros and
/// trimming. It costs one Run for each segment; lines and columns are computed at the end.
class TracedText {
 public:
  struct Run {
    size_t begin = 0;  ///< offset in the text
    Place place;
    bool literal = false;  ///< template text: the place advances with the text
  };

  TracedText() = default;
  explicit TracedText(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  const std::vector<Run>& runs() const { return runs_; }
  std::string take_text() && { return std::move(text_); }

  /// Template text that stands at `place`.
  void append_literal(std::string_view text, Place place) { append_run(text, place, true); }
  /// A value printed at `place`.
  void append_printed(std::string_view text, Place place) { append_run(text, place, false); }
  /// A text with origins of its own; what has none was printed at `place`.
  void append(const TracedText& other, Place place);
  TracedText substring(size_t begin, size_t size) const;

 private:
  void append_run(std::string_view text, Place place, bool literal);

  std::string text_;
  std::vector<Run> runs_;
};

}  // namespace forge::python
