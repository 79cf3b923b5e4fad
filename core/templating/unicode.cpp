#include "core/templating/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace forge::templating {
namespace {

constexpr int32_t replacement = 0xFFFD;

/// Decodes one code point; the number of bytes read, or 0 where they are not UTF-8.
size_t decode(std::string_view text, size_t position, int32_t& code_point) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + position;
  const auto size = static_cast<utf8proc_ssize_t>(text.size() - position);
  const utf8proc_ssize_t used = utf8proc_iterate(bytes, size, &code_point);
  return used > 0 ? static_cast<size_t>(used) : 0;
}

}  // namespace

int32_t next_code_point(std::string_view text, size_t& position) {
  const unsigned char byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) {
    ++position;
    return byte;
  }
  int32_t code_point = replacement;
  const size_t used = decode(text, position, code_point);
  position += std::max<size_t>(used, 1);
  return used > 0 ? code_point : replacement;
}

void append_code_point(std::string& text, int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes);
  if (size <= 0) return append_code_point(text, replacement);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_ascii(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    int32_t code_point = 0;
    const size_t used = decode(text, i, code_point);
    if (used == 0) return i;
    i += used;
  }
  return std::string_view::npos;
}

size_t length_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t byte_offset(std::string_view text, size_t index) {
  if (index >= text.size()) return text.size();  // never more code points than bytes
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) next_code_point(text, offset);
  return offset;
}

bool is_space(int32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  if (c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)) return true;
  return c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_letter(int32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(int32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_word(int32_t c) {
  if (c == '_' || is_letter(c) || is_decimal_digit(c)) return true;
  if (c < 0x80) return false;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_printable(int32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  const utf8proc_category_t category = utf8proc_category(c);
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

size_t leading_space(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    size_t next = position;
    if (!is_space(next_code_point(text, next))) break;
    position = next;
  }
  return position;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    size_t next = begin;
    if (!is_space(next_code_point(text, next))) break;
    end = begin;
  }
  return text.size() - end;
}

}  // namespace forge::templating
