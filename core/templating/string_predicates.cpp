// The str methods that say what a text is made of.

#include <unordered_map>

#include "core/templating/attributes.h"
#include "core/templating/letter_case.h"
#include "core/templating/parameters.h"
#include "core/templating/unicode.h"

namespace forge::templating {
namespace {

template <bool (*predicate)(int32_t), bool of_empty = false>
Value all_are(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  const std::string& text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    if (!predicate(next_code_point(text, i))) return Value::boolean(false);
  }
  return Value::boolean(of_empty || !text.empty());
}

bool is_letter_or_digit(int32_t c) { return is_letter(c) || is_numeric(c) || is_digit(c); }
bool is_ascii_character(int32_t c) { return c < 0x80; }

/// Whether there are cased letters and all of them are of one case.
template <bool upper>
Value is_of_case(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  const std::string& text = self.as_string();
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    if ((upper ? is_lower(c) : is_upper(c)) || is_title(c)) return Value::boolean(false);
    found = found || (upper ? is_upper(c) : is_lower(c));
  }
  return Value::boolean(found);
}

/// Whether upper case begins the words, and only them.
Value is_title_case(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  const std::string& text = self.as_string();
  bool inside_word = false, found = false;
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    const bool begins = is_upper(c) || is_title(c);
    if (begins ? inside_word : is_lower(c) && !inside_word) return Value::boolean(false);
    inside_word = is_cased(c);
    found = found || inside_word;
  }
  return Value::boolean(found);
}

Value is_identifier(const Value& self, const Arguments& arguments) {
  Parameters("isidentifier()", arguments, {});
  const std::string& text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    if (!is_part_of_identifier(next_code_point(text, i), first)) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

}  // namespace

Method find_string_predicate(std::string_view name) {
  static const std::unordered_map<std::string_view, Method> methods = {
      {"isalpha", all_are<is_letter>},
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_decimal_digit>},
      {"isnumeric", all_are<is_numeric>},
      {"isalnum", all_are<is_letter_or_digit>},
      {"isspace", all_are<is_space>},
      {"isascii", all_are<is_ascii_character, true>},
      {"isprintable", all_are<is_printable, true>},
      {"isupper", is_of_case<true>},
      {"islower", is_of_case<false>},
      {"istitle", is_title_case},
      {"isidentifier", is_identifier},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

}  // namespace forge::templating
