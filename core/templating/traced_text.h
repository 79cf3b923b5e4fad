#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/source.h"

namespace forge::templating {

class Unit;

/// A template in one use: the same template may be reached by several includes.
struct Usage {
  const Unit* unit = nullptr;
  std::shared_ptr<const SourceSpan> via;  ///< the extends, include or import that led to it
};

/// A place in a template's preprocessed text.
struct Place {
  const Usage* usage = nullptr;
  uint32_t position = 0;
};

/// A text that knows which template wrote each part of it, through block inheritance, macros and
/// trimming. It costs one Run for each stretch; lines and columns are worked out at the end.
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
  void append_literal(std::string_view text, Place place);
  /// A value printed at `place`.
  void append_printed(std::string_view text, Place place);
  /// A text with origins of its own; what has none was printed at `place`.
  void append(const TracedText& other, Place place);
  TracedText substring(size_t begin, size_t size) const;

 private:
  void add_run(Place place, bool literal);

  std::string text_;
  std::vector<Run> runs_;
};

}  // namespace forge::templating
