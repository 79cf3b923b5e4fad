#include "core/data/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace forge::data {
namespace {

struct CodePoint {
  utf8proc_int32_t code;
  size_t length;  ///< 0: not well-formed
};

CodePoint code_point_at(std::string_view text, size_t position) {
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position,
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - position, 4)),
                       &code);
  return {code, length <= 0 ? 0 : static_cast<size_t>(length)};
}

bool is_white_space(utf8proc_int32_t code) {  // PropList.txt, White_Space
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

CharacterKind kind_of(utf8proc_int32_t code) {
  if (is_white_space(code)) return CharacterKind::space;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterKind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterKind::number;
    default: return CharacterKind::other;
  }
}

std::array<CharacterKind, 128> make_ascii_kinds() {
  std::array<CharacterKind, 128> kinds{};
  for (int code = 0; code < 128; ++code) kinds[code] = kind_of(code);
  return kinds;
}

}  // namespace

Character character_at(std::string_view text, size_t position) {
  static const std::array<CharacterKind, 128> ascii_kinds = make_ascii_kinds();
  const uint8_t first = static_cast<uint8_t>(text[position]);
  if (first < 0x80) return {ascii_kinds[first], 1};
  const CodePoint next = code_point_at(text, position);
  if (next.length == 0) return {CharacterKind::other, 1};
  return {kind_of(next.code), static_cast<uint8_t>(next.length)};
}

size_t length_before(std::string_view text, size_t position) {
  size_t begin = position - 1;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80; };
  while (begin > 0 && position - begin < 4 && continues(begin)) --begin;
  const size_t length = code_point_at(text, begin).length;
  return length == position - begin ? length : 1;
}

size_t run_end(std::string_view text, size_t position, CharacterKind kind) {
  while (position < text.size()) {
    const Character next = character_at(text, position);
    if (next.kind != kind) break;
    position += next.length;
  }
  return position;
}

bool is_word_character(std::string_view text, size_t position) {
  if (character_at(text, position).kind == CharacterKind::letter) return true;
  const CodePoint point = code_point_at(text, position);
  if (point.length == 0) return false;
  switch (utf8proc_category(point.code)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

}  // namespace forge::data
