#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forge::templating {

/// Text is UTF-8; positions that templates see count code points, as Python's str does.

/// The code point at `position` (U+FFFD for a broken sequence); moves `position` behind it.
int32_t next_code_point(std::string_view text, size_t& position);
void append_code_point(std::string& text, int32_t code_point);

bool is_ascii(std::string_view text);
inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
/// Offset of the first byte that is not part of well-formed UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);
/// Number of code points.
size_t length_of(std::string_view text);
/// Byte offset of a code point's index; the text's size when the index is past the end.
size_t byte_offset(std::string_view text, size_t index);

/// What Python's `\s` and str.isspace() take as white space.
bool is_space(int32_t code_point);
/// What Python's `\w` takes as part of a word.
bool is_word(int32_t code_point);
bool is_letter(int32_t code_point);
bool is_decimal_digit(int32_t code_point);
/// Whether Python's repr() prints it as it is.
bool is_printable(int32_t code_point);

/// Number of bytes of white space at the beginning, and at the end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace forge::templating
