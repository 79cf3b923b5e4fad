#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forge::python {

/// Text is UTF-8; positions that templates see count code points, as Python's str does.

/// The code point at `position` (U+FFFD for a broken sequence); moves `position` behind it.
int32_t next_code_point(std::string_view text, size_t& position);
/// Where the code point begins that ends at `end` (which is not 0).
size_t previous_code_point(std::string_view text, size_t end);
void append_code_point(std::string& text, int32_t code_point);
std::u32string code_points(std::string_view text);

bool is_ascii(std::string_view text);
inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_ascii_letter_or_digit(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }
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
/// Whether Python's repr() prints it without an escape.
bool is_printable(int32_t code_point);

/// Number of bytes of white space at the beginning, and at the end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

/// Letters' case as Python's str has it: full mappings ("ﬁ" becomes "FI"), title case of its own.

bool is_upper(int32_t code_point);
bool is_lower(int32_t code_point);
bool is_title(int32_t code_point);
bool is_cased(int32_t code_point);
/// str.isupper() or str.islower(): there are cased letters, and all of them are of this case.
bool is_of_case(std::string_view text, bool upper);
/// Digits that str.isdigit() takes: also superscripts and the like.
bool is_digit(int32_t code_point);
/// Whether Python allows it in a name: at its begin, or behind that.
bool is_part_of_identifier(int32_t code_point, bool first);
/// What has a numeric value.
bool is_numeric(int32_t code_point);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string casefold(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);
std::string title_case(std::string_view text);  ///< str.title()

}  // namespace forge::python
