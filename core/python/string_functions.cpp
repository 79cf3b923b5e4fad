#include "core/python/string_functions.h"

#include <algorithm>
#include <deque>

#include "core/base/text.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/unicode.h"

namespace forge::python {
namespace {

bool is_line_break(int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_stripped(std::string_view character, const std::optional<std::string>& characters) {
  if (characters) return characters->find(character) != std::string::npos;
  size_t position = 0;
  return is_space(next_code_point(character, position));
}

std::vector<std::string> split_at_space(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string> parts;
  const auto strip = [&] {
    if (from_right) {
      text.remove_suffix(trailing_space(text));
    } else {
      text.remove_prefix(leading_space(text));
    }
  };
  for (strip(); !text.empty(); strip()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.emplace_back(text);
      break;
    }
    size_t at = from_right ? text.size() : 0;
    while (from_right ? at > 0 && trailing_space(text.substr(0, at)) == 0
                      : at < text.size() && leading_space(text.substr(at)) == 0) {
      if (from_right) {
        at = previous_code_point(text, at);
      } else {
        next_code_point(text, at);
      }
    }
    const std::string_view head = text.substr(0, at), tail = text.substr(at);
    charge_text(from_right ? tail.size() : head.size());
    parts.emplace_back(from_right ? tail : head);
    text = from_right ? head : tail;
  }
  return parts;
}

std::vector<std::string> split_at_text(std::string_view text,
                                       const std::string& separator,
                                       int64_t limit,
                                       bool from_right) {
  if (separator.empty()) throw OperationError("empty separator");
  charge_search(text.size(), separator.size());
  std::vector<std::string> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view head = text.substr(0, at), tail = text.substr(at + separator.size());
    charge_text(from_right ? tail.size() : head.size());
    parts.emplace_back(from_right ? tail : head);
    text = from_right ? head : tail;
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace

Extent strip_extent(std::string_view text,
                    const std::optional<std::string>& characters,
                    bool left,
                    bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    next_code_point(text, next);
    if (!is_stripped(text.substr(begin, next - begin), characters)) break;
    begin = next;
  }
  while (right && end > begin) {
    const size_t last = previous_code_point(text, end);
    if (!is_stripped(text.substr(last, end - last), characters)) break;
    end = last;
  }
  return {begin, end - begin};
}

std::string replace(std::string_view text,
                    std::string_view old,
                    std::string_view fresh,
                    int64_t limit) {
  charge_search(text.size(), old.size());
  std::string result;
  size_t position = 0;
  for (; limit != 0; --limit) {
    size_t found = 0;
    charge_walk(20);
    if (old.empty()) {
      if (position > text.size()) break;
      result += fresh;
      if (position == text.size()) return result;
      found = position;
      next_code_point(text, found);
      result += text.substr(position, found - position);
      position = found;
    } else {
      found = text.find(old, position);
      if (found == std::string_view::npos) break;
      result += text.substr(position, found - position);
      result += fresh;
      position = found + old.size();
    }
    require_text_size(result.size());
  }
  return result += text.substr(position);
}

std::string pad(std::string_view text, char align, size_t width, std::string_view fill) {
  require_text_size(width);
  const size_t size = length_of(text);
  const size_t missing = width > size ? width - size : 0;
  // str.center puts an odd blank on the left when the width is odd (CPython's rule).
  size_t left = align == '>' ? missing : align == '^' ? missing / 2 + (missing & width & 1) : 0;
  std::string result;
  for (size_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (size_t i = left; i < missing; ++i) result += fill;
  return result;
}

std::string with_line_feeds(std::string text) {
  if (text.find('\r') == std::string::npos) return text;
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t line = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const int32_t c = next_code_point(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    charge_text(i - line);
    lines.emplace_back(text.substr(line, (keep_ends ? i : end) - line));
    line = i;
  }
  if (line < text.size()) lines.emplace_back(text.substr(line));
  return lines;
}

std::vector<std::string> split_text(std::string_view text,
                                    const std::optional<std::string>& separator,
                                    int64_t limit,
                                    bool from_right) {
  std::vector<std::string> parts = separator ? split_at_text(text, *separator, limit, from_right)
                                             : split_at_space(text, limit, from_right);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

namespace {

using Characters = std::u32string;

std::string text_of(const Characters& characters) {
  std::string text;
  for (const char32_t c : characters) append_code_point(text, static_cast<int32_t>(c));
  return text;
}

/// What textwrap takes as white space: ASCII alone.
bool is_blank(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_only_blanks(const Characters& chunk) {
  return std::all_of(
      chunk.begin(), chunk.end(), [](char32_t c) { return is_space(static_cast<int32_t>(c)); });
}

/// Cuts a text into words, runs of blanks and dashes between words: what may begin a line.
class ChunkSplitter {
 public:
  ChunkSplitter(const Characters& text, bool at_hyphens) : text_(text), at_hyphens_(at_hyphens) {}

  std::deque<Characters> split() const {
    std::deque<Characters> chunks;
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = chunk_end(begin);
      charge_text(4 * (end - begin));
      chunks.push_back(text_.substr(begin, end - begin));
      begin = end;
    }
    return chunks;
  }

 private:
  size_t chunk_end(size_t begin) const {
    size_t end = begin;
    if (is_blank(text_[begin])) {
      while (end < text_.size() && is_blank(text_[end])) ++end;
      return end;
    }
    if (at_hyphens_ && is_dash(begin)) return dashes_end(begin);
    for (end = begin + 1; end < text_.size() && !is_blank(text_[end]); ++end) {
      if (!at_hyphens_) continue;
      if (is_hyphen_of_word(begin, end)) return end + 1;
      if (is_dash(end)) return end;
    }
    return end;
  }

  bool is_word_at(size_t at) const {
    return at < text_.size() && is_word(static_cast<int32_t>(text_[at]));
  }
  bool is_letter_at(size_t at) const {
    return is_word_at(at) && text_[at] != '_' && !is_decimal_digit(static_cast<int32_t>(text_[at]));
  }

  size_t dashes_end(size_t at) const {
    while (at < text_.size() && text_[at] == '-') ++at;
    return at;
  }

  /// Whether a dash of two or more hyphens stands here, between words.
  bool is_dash(size_t at) const {
    if (at == 0 || dashes_end(at) < at + 2 || !is_word_at(dashes_end(at))) return false;
    static const Characters punctuation = U"!\"'&.,?";
    return is_word_at(at - 1) || punctuation.find(text_[at - 1]) != Characters::npos;
  }

  /// Whether the hyphen here joins two parts of a word; a chunk begins with at least one character.
  bool is_hyphen_of_word(size_t begin, size_t at) const {
    if (text_[at] != '-' || at < begin + 1 || at < 2 || !is_letter_at(at - 1)) return false;
    const bool follows_letters =
        is_letter_at(at - 2) || (at >= 3 && text_[at - 2] == '-' && is_letter_at(at - 3));
    if (!follows_letters || !is_letter_at(at + 1)) return false;
    return is_letter_at(at + 2) ||
           (at + 2 < text_.size() && text_[at + 2] == '-' && is_letter_at(at + 3));
  }

  const Characters& text_;
  bool at_hyphens_;
};

/// Where a chunk longer than the room that is left is cut.
size_t cut_of(const Characters& chunk, size_t room, bool at_hyphens) {
  if (!at_hyphens || chunk.size() <= room || room == 0) return room;
  const size_t hyphen = chunk.rfind('-', room - 1);
  if (hyphen == Characters::npos || hyphen == 0) return room;
  return chunk.find_first_not_of('-') < hyphen ? hyphen + 1 : room;
}

/// Takes the chunks of the next line off the front.
Characters take_line(std::deque<Characters>& chunks, const WrapOptions& options) {
  const auto width = static_cast<size_t>(options.width);
  std::vector<Characters> line;
  size_t used = 0;
  while (!chunks.empty() && used + chunks.front().size() <= width) {
    used += chunks.front().size();
    line.push_back(std::move(chunks.front()));
    chunks.pop_front();
  }
  if (!chunks.empty() && chunks.front().size() > width) {
    if (options.break_long_words) {
      const size_t cut = cut_of(chunks.front(), width - used, options.break_on_hyphens);
      line.push_back(chunks.front().substr(0, cut));
      chunks.front().erase(0, cut);
    } else if (line.empty()) {
      line.push_back(std::move(chunks.front()));
      chunks.pop_front();
    }
  }
  if (!line.empty() && is_only_blanks(line.back())) line.pop_back();
  Characters joined;
  for (const Characters& chunk : line) joined += chunk;
  return joined;
}

}  // namespace

std::vector<std::string> wrap_words(std::string_view text, const WrapOptions& options) {
  if (options.width < 1) throw OperationError("the width of wrapped lines must be positive");
  const Characters characters = code_points(text);
  std::deque<Characters> chunks = ChunkSplitter(characters, options.break_on_hyphens).split();
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    if (!lines.empty() && is_only_blanks(chunks.front())) chunks.pop_front();
    charge_walk(cost_of_value);
    const Characters line = take_line(chunks, options);
    if (!line.empty()) lines.push_back(text_of(line));
  }
  return lines;
}

}  // namespace forge::python
