#include "core/yaml/scalar_scan.h"

#include <algorithm>

#include "core/python/unicode.h"

namespace forge::yaml {

bool is_anchor_character(char c) {
  return python::is_ascii_letter_or_digit(c) || c == '_' || c == '-';
}

namespace {

constexpr size_t npos = std::string_view::npos;

/// Walks a text, leaving out what may hold tabs.
class TabFinder {
 public:
  explicit TabFinder(std::string_view text) : text_(text) {}

  std::optional<size_t> find() {
    while (position_ < text_.size()) {
      if (text_[position_] == '\t') return position_;
      step();
    }
    return std::nullopt;
  }

 private:
  char at(size_t position) const { return position < text_.size() ? text_[position] : '\n'; }
  bool blank_at(size_t position) const { return at(position) <= ' '; }
  size_t line_end(size_t position) const {
    return std::min(text_.find('\n', position), text_.size());
  }

  void step() {
    const char c = text_[position_];
    const bool follows_blank = position_ == 0 || blank_at(position_ - 1);
    if (c == '\n') {
      in_plain_ = false;
      ++position_;
    } else if (c == '#' && follows_blank) {
      position_ = line_end(position_);
    } else if (in_plain_ && c == ':' && blank_at(position_ + 1)) {
      in_plain_ = false;
      ++position_;
    } else if (!in_plain_) {
      step_at_token(c);
    } else {
      step_flow(c);
    }
  }

  /// Skips the token at position_, or begins a plain scalar.
  void step_at_token(char c) {
    if (c == '\'' || c == '"') {
      position_ = quoted_scalar_end(text_, position_).value_or(text_.size());
    } else if ((c == '|' || c == '>') && flow_depth_ == 0) {
      position_ = block_scalar_end(text_, position_);
    } else if (c == '&' || c == '!' || c == '*') {
      while (position_ < text_.size() && !blank_at(position_)) ++position_;
    } else if (c == ' ' || ((c == '-' || c == '?' || c == ':') && blank_at(position_ + 1))) {
      ++position_;
    } else {
      in_plain_ = true;
      step_flow(c);
    }
  }

  void step_flow(char c) {
    ++position_;
    const bool opens = c == '[' || c == '{', closes = c == ']' || c == '}';
    if (opens) ++flow_depth_;
    if (closes && flow_depth_ > 0) --flow_depth_;
    if (opens || closes || (c == ',' && flow_depth_ > 0)) in_plain_ = false;
  }

  std::string_view text_;
  size_t position_ = 0;
  int flow_depth_ = 0;
  bool in_plain_ = false;
};

}  // namespace

std::optional<size_t> quoted_scalar_end(std::string_view text, size_t position) {
  const char quote = text[position];
  for (size_t i = position + 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return i + 1;
      ++i;  // '' is a quote within the scalar
    }
  }
  return std::nullopt;
}

size_t block_scalar_end(std::string_view text, size_t position) {
  const auto line_end = [text](size_t from) {
    return std::min(text.find('\n', from), text.size());
  };
  const size_t header = position == 0 ? 0 : text.rfind('\n', position - 1) + 1;
  const size_t indent = text.find_first_not_of(' ', header) - header;
  const bool is_root = header + indent == position || text.substr(header, 3) == "---";
  size_t line = std::min(line_end(position) + 1, text.size());
  while (line < text.size()) {
    const size_t end = line_end(line);
    // Its lines are the blank ones and those indented further than the line of its header.
    const size_t begin = std::min(text.find_first_not_of(' ', line), end);
    if (!is_root && begin < end && begin - line <= indent) return line;
    line = std::min(end + 1, text.size());
  }
  return text.size();
}

std::optional<size_t> find_invalid_tab(std::string_view text) {
  if (text.find('\t') == npos) return std::nullopt;
  return TabFinder(text).find();
}

size_t skip_properties(std::string_view text, size_t position) {
  while (position < text.size() && (text[position] == '&' || text[position] == '!')) {
    while (position < text.size() && static_cast<unsigned char>(text[position]) > ' ') ++position;
    while (position < text.size() && static_cast<unsigned char>(text[position]) <= ' ') ++position;
  }
  return position;
}

}  // namespace forge::yaml
