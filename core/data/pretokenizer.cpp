#include "core/data/pretokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace forge::data {
namespace {

enum class Kind : uint8_t { letter, number, space, other };

struct Character {
  Kind kind;
  uint8_t length;  ///< in bytes
};

bool is_white_space(utf8proc_int32_t code) {  // PropList.txt, White_Space
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

Kind kind_of(utf8proc_int32_t code) {
  if (is_white_space(code)) return Kind::space;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Kind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Kind::number;
    default: return Kind::other;
  }
}

std::array<Kind, 128> make_ascii_kinds() {
  std::array<Kind, 128> kinds{};
  for (int code = 0; code < 128; ++code) kinds[code] = kind_of(code);
  return kinds;
}

/// Kind and length of one Unicode scalar value. Everything before `position` is complete.
Character character_at(std::string_view text, size_t position) {
  static const std::array<Kind, 128> ascii_kinds = make_ascii_kinds();
  const uint8_t first = static_cast<uint8_t>(text[position]);
  if (first < 0x80) return {ascii_kinds[first], 1};
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - position, 4)),
                       &code);
  if (length <= 0) return {Kind::other, 1};
  return {kind_of(code), static_cast<uint8_t>(length)};
}

/// Where the run of characters of `kind` that begins at `position` ends.
size_t run_end(std::string_view text, size_t position, Kind kind) {
  while (position < text.size()) {
    const Character next = character_at(text, position);
    if (next.kind != kind) break;
    position += next.length;
  }
  return position;
}

size_t contraction_length(std::string_view text, size_t position) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.compare(position, ending.size(), ending) == 0) return ending.size();
  }
  return 0;
}

/// Length of white space: all of it at the end of the text; before a word all but its last
/// character, which belongs to the word or is a piece of its own.
size_t white_space_length(std::string_view text, size_t position) {
  size_t end = position;
  size_t last = position;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::space) break;
    last = end;
    end += next.length;
  }
  if (end == text.size() || last == position) return end - position;
  return last - position;
}

/// Whether the character before `position` (> 0) is white. Every byte that does not continue a
/// character begins one, so the text need not be read from its start.
bool is_after_white_space(std::string_view text, size_t position) {
  size_t begin = position - 1;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  while (begin > 0 && position - begin < 4 && continues(begin)) --begin;
  const Character before = character_at(text, begin);
  return before.kind == Kind::space && begin + before.length == position;
}

}  // namespace

size_t piece_length(std::string_view text, size_t position) {
  if (text[position] == '\'') {
    if (const size_t length = contraction_length(text, position)) return length;
  }
  size_t begin = position;
  if (text[position] == ' ' && position + 1 < text.size()) ++begin;
  const Character first = character_at(text, begin);
  if (first.kind == Kind::space) return white_space_length(text, position);
  return run_end(text, begin + first.length, first.kind) - position;
}

size_t next_safe_cut(std::string_view text, size_t from) {
  for (size_t i = from < 1 ? 1 : from; i < text.size(); ++i) {
    const char here = text[i];
    const bool white = here == ' ' || (here >= '\t' && here <= '\r');
    if (white && !is_after_white_space(text, i)) return i;
  }
  return text.size();
}

}  // namespace forge::data
