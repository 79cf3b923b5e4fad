#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forge::generation {

/// Throws Error where one of the texts is empty: it would stand before every token.
void check_stop_texts(const std::vector<std::string>& texts);

/// Turns the bytes of tokens, which come one after another, into text that may be shown at once.
/// What may still be the beginning of a stop text is held back, and so is a character of which some
/// bytes are missing. Bytes that are no UTF-8 become U+FFFD.
class TextStream {
 public:
  /// `stop_texts`, none of them empty, end the text: it is cut in front of the first that is whole.
  explicit TextStream(std::vector<std::string> stop_texts) : stop_texts_(std::move(stop_texts)) {}

  /// Takes more bytes; returns what can be shown now. After a stop text nothing more comes.
  std::string push(std::string_view bytes);
  /// No more bytes come: returns what was held back.
  std::string finish();
  /// Whether a stop text came.
  bool stopped() const { return stopped_; }

 private:
  /// Where the stop text that is whole first begins; npos: none is.
  size_t find_stop_text() const;
  /// How many bytes at the end may be the beginning of a stop text.
  size_t possible_stop_bytes() const;

  std::vector<std::string> stop_texts_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace forge::generation
