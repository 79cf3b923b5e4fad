#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forge::templating {

/// Letters' case as Python's str has it: full mappings ("ﬁ" becomes "FI"), title case of its own.

bool is_upper(int32_t code_point);
bool is_lower(int32_t code_point);
bool is_title(int32_t code_point);
bool is_cased(int32_t code_point);
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

}  // namespace forge::templating
