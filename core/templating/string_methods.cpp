#include <algorithm>
#include <unordered_map>

#include "core/templating/attributes.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"
#include "core/templating/python_text.h"
#include "core/templating/string_format.h"
#include "core/templating/string_functions.h"
#include "core/templating/unicode.h"

namespace forge::templating {
namespace {

Value strings(const std::vector<std::string>& parts) {
  List items;
  for (const std::string& part : parts) items.push_back(Value::string(part));
  return Value::list(std::move(items));
}

/// An argument that may be none, as a pointer to its text.
struct OptionalText {
  OptionalText(const Parameters& parameters, size_t index) {
    if (parameters.value(index).is_none()) return;
    text = parameters.text(index);
    pointer = &text;
  }
  OptionalText(const OptionalText&) = delete;
  OptionalText& operator=(const OptionalText&) = delete;
  std::string text;
  const std::string* pointer = nullptr;
};

template <std::string (*function)(std::string_view)>
Value mapped(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  return Value::string(function(self.as_string()));
}

template <bool left, bool right>
Value strip(const Value& self, const Arguments& arguments) {
  const Parameters parameters("strip()", arguments, {"chars"});
  const OptionalText characters(parameters, 0);
  const Extent kept = strip_extent(self.as_string(), characters.pointer, left, right);
  return Value::string(self.traced().substring(kept.begin, kept.size));
}

Value split(const Value& self, const Arguments& arguments) {
  const Parameters parameters("split()", arguments, {"sep", "maxsplit"});
  const OptionalText separator(parameters, 0);
  return strings(split_text(self.as_string(), separator.pointer, parameters.integer(1, -1)));
}

Value split_from_right(const Value& self, const Arguments& arguments) {
  const Parameters parameters("rsplit()", arguments, {"sep", "maxsplit"});
  const OptionalText separator(parameters, 0);
  return strings(
      split_text_from_right(self.as_string(), separator.pointer, parameters.integer(1, -1)));
}

Value splitlines(const Value& self, const Arguments& arguments) {
  return strings(
      split_lines(self.as_string(), Parameters("splitlines()", arguments, {"keepends"}).flag(0)));
}

Value partition(const Value& self, const Arguments& arguments, bool from_right) {
  const std::string separator = Parameters("partition()", arguments, {"sep"}, 1).text(0);
  if (separator.empty()) throw OperationError("empty separator");
  const std::string& text = self.as_string();
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  const auto part = [](std::string piece) { return Value::string(std::move(piece)); };
  if (at == std::string::npos) {
    if (from_right) return Value::tuple({part(""), part(""), self});
    return Value::tuple({self, part(""), part("")});
  }
  return Value::tuple(
      {part(text.substr(0, at)), part(separator), part(text.substr(at + separator.size()))});
}
Value partition_left(const Value& self, const Arguments& arguments) {
  return partition(self, arguments, false);
}
Value partition_right(const Value& self, const Arguments& arguments) {
  return partition(self, arguments, true);
}

Value join_texts(const Value& self, const Arguments& arguments) {
  std::string joined;
  const List items = iterate(Parameters("join()", arguments, {"iterable"}, 1).value(0));
  for (size_t i = 0; i < items.size(); ++i) {
    if (!require_defined(items[i]).is_string()) {
      throw OperationError("join() takes strings, but item " + std::to_string(i) + " is of type '" +
                               type_name(items[i]) + "'",
                           "the filter `join` takes any values");
    }
    if (i > 0) joined += self.as_string();
    joined += items[i].as_string();
    require_text_size(joined.size());
  }
  return Value::string(std::move(joined));
}

Value replace_text(const Value& self, const Arguments& arguments) {
  const Parameters parameters("replace()", arguments, {"old", "new", "count"}, 2);
  return Value::string(
      replace(self.as_string(), parameters.text(0), parameters.text(1), parameters.integer(2, -1)));
}

template <bool at_start>
Value has_affix(const Value& self, const Arguments& arguments) {
  const Value affix =
      Parameters(at_start ? "startswith()" : "endswith()", arguments, {"affix"}, 1).value(0);
  const List candidates = affix.kind() == Value::Kind::tuple ? affix.items() : List{affix};
  const std::string& text = self.as_string();
  for (const Value& candidate : candidates) {
    if (!require_defined(candidate).is_string()) {
      throw OperationError("startswith() and endswith() take a string or a tuple of strings");
    }
    const std::string& wanted = candidate.as_string();
    if (wanted.size() > text.size()) continue;
    if (text.compare(at_start ? 0 : text.size() - wanted.size(), wanted.size(), wanted) == 0) {
      return Value::boolean(true);
    }
  }
  return Value::boolean(false);
}

template <bool prefix>
Value remove_affix(const Value& self, const Arguments& arguments) {
  const Parameters parameters(
      prefix ? "removeprefix()" : "removesuffix()", arguments, {"affix"}, 1);
  const size_t size = parameters.text(0).size();
  if (!has_affix<prefix>(self, arguments).as_boolean()) return self;
  const size_t kept = self.as_string().size() - size;
  return Value::string(self.traced().substring(prefix ? size : 0, kept));
}

/// The part of the text between the optional arguments `start` and `end`, and where it begins.
std::pair<std::string_view, size_t> searched_part(const Value& self, const Parameters& parameters) {
  const std::string& text = self.as_string();
  const auto length = static_cast<int64_t>(length_of(std::string_view(text)));
  const auto bound = [&](size_t index, int64_t fallback) {
    const int64_t value = parameters.value(index).is_none() ? fallback : parameters.integer(index);
    return static_cast<size_t>(
        std::min(length, std::max<int64_t>(0, value < 0 ? value + length : value)));
  };
  const size_t first = bound(1, 0), last = std::max(first, bound(2, length));
  const size_t begin = byte_offset(text, first);
  return {std::string_view(text).substr(begin, byte_offset(text, last) - begin), first};
}

template <bool from_right, bool must_exist>
Value find_text(const Value& self, const Arguments& arguments) {
  const Parameters parameters("find()", arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = parameters.text(0);
  const auto [part, first] = searched_part(self, parameters);
  const size_t at = from_right ? part.rfind(wanted) : part.find(wanted);
  if (at != std::string_view::npos) {
    return Value::integer(static_cast<int64_t>(first + length_of(part.substr(0, at))));
  }
  if (must_exist) throw OperationError("substring not found");
  return Value::integer(-1);
}

Value count_text(const Value& self, const Arguments& arguments) {
  const Parameters parameters("count()", arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = parameters.text(0);
  std::string_view part = searched_part(self, parameters).first;
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(length_of(part)) + 1);
  int64_t count = 0;
  for (size_t at = part.find(wanted); at != std::string_view::npos; at = part.find(wanted)) {
    part.remove_prefix(at + wanted.size());
    ++count;
  }
  return Value::integer(count);
}

template <char align>
Value padded(const Value& self, const Arguments& arguments) {
  const Parameters parameters("this method", arguments, {"width", "fillchar"}, 1);
  const std::string fill = parameters.text(1, " ");
  if (length_of(std::string_view(fill)) != 1)
    throw OperationError("the fill character must be one character");
  const auto width = static_cast<size_t>(std::max<int64_t>(0, parameters.integer(0)));
  return Value::string(pad(self.as_string(), align, width, fill));
}

Value fill_with_zeros(const Value& self, const Arguments& arguments) {
  const auto width =
      std::max<int64_t>(0, Parameters("zfill()", arguments, {"width"}, 1).integer(0));
  const std::string& text = self.as_string();
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const std::string sign = has_sign ? text.substr(0, 1) : "";
  const size_t digits_width =
      static_cast<size_t>(width) - std::min(sign.size(), static_cast<size_t>(width));
  return Value::string(sign + pad(text.substr(sign.size()), '>', digits_width, "0"));
}

Value expand_tabs(const Value& self, const Arguments& arguments) {
  const int64_t size = Parameters("expandtabs()", arguments, {"tabsize"}).integer(0, 8);
  std::string text;
  int64_t column = 0;
  for (const char c : self.as_string()) {
    if (c == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      require_text_size(text.size() + static_cast<size_t>(blanks));
      text.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
      continue;
    }
    text += c;
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++column;
    if (c == '\n' || c == '\r') column = 0;
  }
  return Value::string(std::move(text));
}

Value format_text(const Value& self, const Arguments& arguments) {
  return Value::string(brace_format(self.as_string(), arguments));
}

template <bool (*predicate)(int32_t)>
Value all_are(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  const std::string& text = self.as_string();
  for (size_t i = 0; i < text.size();) {
    if (!predicate(next_code_point(text, i))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

bool is_letter_or_digit(int32_t c) { return c != '_' && is_word(c); }

/// Whether there are cased letters and all of them are of one case.
template <bool upper>
Value is_cased(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  const std::string& text = self.as_string();
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    if (upper ? is_lower(c) : is_upper(c)) return Value::boolean(false);
    found = found || (upper ? is_upper(c) : is_lower(c));
  }
  return Value::boolean(found);
}

Value is_identifier(const Value& self, const Arguments& arguments) {
  const std::string& text = self.as_string();
  size_t first = 0;
  const bool digit_first = !text.empty() && is_decimal_digit(next_code_point(text, first));
  return Value::boolean(!digit_first && all_are<is_word>(self, arguments).as_boolean());
}

}  // namespace

Method find_string_method(std::string_view name) {
  static const std::unordered_map<std::string_view, Method> methods = {
      {"format", format_text},
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"casefold", mapped<to_lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title_case>},
      {"swapcase", mapped<swap_case>},
      {"strip", strip<true, true>},
      {"lstrip", strip<true, false>},
      {"rstrip", strip<false, true>},
      {"split", split},
      {"rsplit", split_from_right},
      {"splitlines", splitlines},
      {"partition", partition_left},
      {"rpartition", partition_right},
      {"join", join_texts},
      {"replace", replace_text},
      {"startswith", has_affix<true>},
      {"endswith", has_affix<false>},
      {"removeprefix", remove_affix<true>},
      {"removesuffix", remove_affix<false>},
      {"find", find_text<false, false>},
      {"rfind", find_text<true, false>},
      {"index", find_text<false, true>},
      {"rindex", find_text<true, true>},
      {"count", count_text},
      {"ljust", padded<'<'>},
      {"rjust", padded<'>'>},
      {"center", padded<'^'>},
      {"zfill", fill_with_zeros},
      {"expandtabs", expand_tabs},
      {"isalpha", all_are<is_letter>},
      {"isdigit", all_are<is_decimal_digit>},
      {"isdecimal", all_are<is_decimal_digit>},
      {"isnumeric", all_are<is_decimal_digit>},
      {"isalnum", all_are<is_letter_or_digit>},
      {"isspace", all_are<is_space>},
      {"isupper", is_cased<true>},
      {"islower", is_cased<false>},
      {"isidentifier", is_identifier},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

}  // namespace forge::templating
