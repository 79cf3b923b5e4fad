// The methods of Python's str.

#include <algorithm>
#include <unordered_map>

#include "core/python/attributes.h"
#include "core/python/format.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/string_functions.h"
#include "core/python/unicode.h"

namespace forge::python {
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

template <bool upper>
Value has_case(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  return Value::boolean(is_of_case(self.as_string(), upper));
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

Value strings(const std::vector<std::string>& parts) {
  List items;
  for (const std::string& part : parts) items.push_back(Value::string(part));
  return Value::list(std::move(items));
}

template <std::string (*function)(std::string_view)>
Value mapped(const Value& self, const Arguments& arguments) {
  Parameters("this method", arguments, {});
  return Value::string(function(self.as_string()));
}

template <bool left, bool right>
Value strip(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("strip()", arguments, {"chars"});
  const Extent kept = strip_extent(self.as_string(), parameters.optional_text(0), left, right);
  return Value::string(self.traced().substring(kept.begin, kept.size));
}

template <bool from_right>
Value split_by(const Value& self, const Arguments& arguments) {
  const Parameters parameters(from_right ? "rsplit()" : "split()", arguments, {"sep", "maxsplit"});
  return strings(split_text(
      self.as_string(), parameters.optional_text(0), parameters.integer(1, -1), from_right));
}

Value splitlines(const Value& self, const Arguments& arguments) {
  return strings(
      split_lines(self.as_string(), Parameters("splitlines()", arguments, {"keepends"}).flag(0)));
}

template <bool from_right>
Value partition(const Value& self, const Arguments& arguments) {
  const std::string separator =
      Parameters::positional("partition()", arguments, {"sep"}, 1).text(0);
  if (separator.empty()) throw OperationError("empty separator");
  const std::string& text = self.as_string();
  charge_search(text.size(), separator.size());
  const size_t at = from_right ? text.rfind(separator) : text.find(separator);
  const auto part = [](std::string piece) { return Value::string(std::move(piece)); };
  if (at == std::string::npos) {
    if (from_right) return Value::tuple({part(""), part(""), self});
    return Value::tuple({self, part(""), part("")});
  }
  return Value::tuple(
      {part(text.substr(0, at)), part(separator), part(text.substr(at + separator.size()))});
}

Value join_texts(const Value& self, const Arguments& arguments) {
  std::string joined;
  const List items = iterate(Parameters::positional("join()", arguments, {"iterable"}, 1).value(0));
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
  const auto parameters =
      Parameters::positional("replace()", arguments, {"old", "new", "count"}, 2);
  return Value::string(
      replace(self.as_string(), parameters.text(0), parameters.text(1), parameters.integer(2, -1)));
}

/// The part of a text between the optional arguments `start` and `end`.
struct SearchedPart {
  SearchedPart(const Value& self, const Parameters& parameters) {
    const std::string& whole = self.as_string();
    const auto length = static_cast<int64_t>(length_of(whole));
    const auto bound = [&](size_t index, int64_t fallback) {
      const int64_t value = parameters.optional_integer(index).value_or(fallback);
      return std::max<int64_t>(0, value < 0 ? value + length : value);
    };
    const int64_t from = bound(1, 0), to = std::min(length, bound(2, length));
    exists = from <= to;
    if (!exists) return;
    first = static_cast<size_t>(from);
    const size_t begin = byte_offset(whole, first);
    text =
        std::string_view(whole).substr(begin, byte_offset(whole, static_cast<size_t>(to)) - begin);
  }
  std::string_view text;
  size_t first = 0;     ///< index of its first character
  bool exists = false;  ///< false: it begins behind the end, and not even "" lies in it
};

template <bool at_start>
Value has_affix(const Value& self, const Arguments& arguments) {
  const char* const method = at_start ? "startswith()" : "endswith()";
  const auto parameters = Parameters::positional(method, arguments, {"affix", "start", "end"}, 1);
  const Value affix = parameters.value(0);
  const List candidates = affix.kind() == Value::Kind::tuple ? affix.items() : List{affix};
  const SearchedPart searched(self, parameters);
  for (const Value& candidate : candidates) {
    if (!require_defined(candidate).is_string()) {
      throw OperationError("startswith() and endswith() take a string or a tuple of strings");
    }
    const std::string& wanted = candidate.as_string();
    if (!searched.exists || wanted.size() > searched.text.size()) continue;
    const size_t at = at_start ? 0 : searched.text.size() - wanted.size();
    if (searched.text.compare(at, wanted.size(), wanted) == 0) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool prefix>
Value remove_affix(const Value& self, const Arguments& arguments) {
  const char* const method = prefix ? "removeprefix()" : "removesuffix()";
  const std::string affix = Parameters::positional(method, arguments, {"affix"}, 1).text(0);
  const std::string& text = self.as_string();
  if (affix.size() > text.size()) return self;
  const size_t kept = text.size() - affix.size();
  if (text.compare(prefix ? 0 : kept, affix.size(), affix) != 0) return self;
  return Value::string(self.traced().substring(prefix ? affix.size() : 0, kept));
}

template <bool from_right, bool must_exist>
Value find_text(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("find()", arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = parameters.text(0);
  const SearchedPart part(self, parameters);
  charge_search(part.text.size(), wanted.size());
  const size_t at = !part.exists ? std::string_view::npos
                    : from_right ? part.text.rfind(wanted)
                                 : part.text.find(wanted);
  if (at != std::string_view::npos) {
    return Value::integer(static_cast<int64_t>(part.first + length_of(part.text.substr(0, at))));
  }
  if (must_exist) throw OperationError("substring not found");
  return Value::integer(-1);
}

Value count_text(const Value& self, const Arguments& arguments) {
  const auto parameters = Parameters::positional("count()", arguments, {"sub", "start", "end"}, 1);
  const std::string wanted = parameters.text(0);
  const SearchedPart part(self, parameters);
  if (!part.exists) return Value::integer(0);
  charge_search(part.text.size(), wanted.size());
  std::string_view rest = part.text;
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(length_of(rest)) + 1);
  int64_t count = 0;
  for (size_t at = rest.find(wanted); at != std::string_view::npos; at = rest.find(wanted)) {
    rest.remove_prefix(at + wanted.size());
    ++count;
  }
  return Value::integer(count);
}

template <char align>
Value padded(const Value& self, const Arguments& arguments) {
  const auto parameters =
      Parameters::positional("this method", arguments, {"width", "fillchar"}, 1);
  const std::string fill = parameters.text(1, " ");
  if (length_of(fill) != 1) throw OperationError("the fill character must be one character");
  const auto width = static_cast<size_t>(std::max<int64_t>(0, parameters.integer(0)));
  return Value::string(pad(self.as_string(), align, width, fill));
}

Value fill_with_zeros(const Value& self, const Arguments& arguments) {
  const int64_t width = Parameters::positional("zfill()", arguments, {"width"}, 1).integer(0);
  const std::string& text = self.as_string();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const auto digits = static_cast<size_t>(std::max<int64_t>(width, sign)) - sign;
  return Value::string(text.substr(0, sign) + pad(text.substr(sign), '>', digits, "0"));
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

Value format_from_map(const Value& self, const Arguments& arguments) {
  const Value map = Parameters::positional("format_map()", arguments, {"mapping"}, 1).value(0);
  if (!require_defined(map).is_dict()) throw OperationError("format_map() takes a dict");
  Arguments named;
  for (const auto& [key, value] : map.as_dict().entries()) {
    if (key.is_string()) named.named.emplace_back(key.as_string(), value);
  }
  return Value::string(brace_format(self.as_string(), named));
}

/// A table for translate(): from a dict, or from characters and those to put for them.
Value make_translation(const Value&, const Arguments& arguments) {
  const auto parameters = Parameters::positional("maketrans()", arguments, {"x", "y", "z"}, 1);
  const auto number_of = [](const Value& character) {
    const bool is_one = character.is_string() && length_of(character.as_string()) == 1;
    if (!is_one) throw OperationError("maketrans() takes single characters as keys");
    size_t position = 0;
    return Value::integer(next_code_point(character.as_string(), position));
  };
  Dict table;
  if (!parameters.given(1)) {
    if (!require_defined(parameters.value(0)).is_dict())
      throw OperationError("maketrans() with one argument takes a dict");
    for (const auto& [key, value] : parameters.value(0).as_dict().entries())
      table.set(key.is_integral() ? key : number_of(key), value);
    return Value::dict(std::move(table));
  }
  const List from = iterate(Value::string(parameters.text(0)));
  const List to = iterate(Value::string(parameters.text(1)));
  if (from.size() != to.size())
    throw OperationError("the first two arguments of maketrans() must be of one length");
  for (size_t i = 0; i < from.size(); ++i) table.set(number_of(from[i]), number_of(to[i]));
  for (const Value& removed : iterate(Value::string(parameters.text(2))))
    table.set(number_of(removed), Value());
  return Value::dict(std::move(table));
}

Value translate(const Value& self, const Arguments& arguments) {
  const Value table = Parameters::positional("translate()", arguments, {"table"}, 1).value(0);
  std::string text;
  for (const Value& character : iterate(self)) {
    size_t position = 0;
    const int32_t number = next_code_point(character.as_string(), position);
    const std::optional<Value> item = get_item(table, Value::integer(number));
    if (!item) {
      text += character.as_string();
    } else if (item->is_string()) {
      text += item->as_string();
    } else if (item->is_integral()) {
      append_character(text, item->as_integer());
    } else if (!item->is_none()) {
      throw OperationError("a translation table holds numbers of characters, strings or none");
    }
    require_text_size(text.size());
  }
  return Value::string(std::move(text));
}

}  // namespace

Method find_string_method(std::string_view name) {
  static const std::unordered_map<std::string_view, Method> methods = {
      {"format", format_text},
      {"format_map", format_from_map},
      {"maketrans", make_translation},
      {"translate", translate},
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"casefold", mapped<casefold>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title_case>},
      {"swapcase", mapped<swap_case>},
      {"strip", strip<true, true>},
      {"lstrip", strip<true, false>},
      {"rstrip", strip<false, true>},
      {"split", split_by<false>},
      {"rsplit", split_by<true>},
      {"splitlines", splitlines},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
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
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_decimal_digit>},
      {"isnumeric", all_are<is_numeric>},
      {"isalnum", all_are<is_letter_or_digit>},
      {"isspace", all_are<is_space>},
      {"isascii", all_are<is_ascii_character, true>},
      {"isprintable", all_are<is_printable, true>},
      {"isupper", has_case<true>},
      {"islower", has_case<false>},
      {"istitle", is_title_case},
      {"isidentifier", is_identifier},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

}  // namespace forge::python
