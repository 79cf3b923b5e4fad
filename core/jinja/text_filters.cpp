#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/python/format.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/string_functions.h"
#include "core/python/unicode.h"

namespace forge::jinja {
namespace {

/// The input as a string value; a string keeps its origins.
Value to_text(const Value& input) {
  return input.is_string() ? input : Value::string(str_of(input));
}

template <std::string (*function)(std::string_view)>
Value mapped(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("this filter", arguments, {});
  return Value::string(function(str_of(input)));
}

bool separates_words(int32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

/// The `title` filter begins words after white space, '-' and brackets (not after apostrophes).
std::string title(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool is_separator = separates_words(next_code_point(text, i));
    const size_t second = i;
    for (size_t next = i; next < text.size(); i = next) {
      if (separates_words(next_code_point(text, next)) != is_separator) break;
    }
    result += to_upper(text.substr(begin, second - begin));
    result += to_lower(text.substr(second, i - second));
  }
  return result;
}

Value trim(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'trim'", arguments, {"chars"});
  const std::optional<std::string> characters = parameters.optional_text(0);
  const Value text = to_text(input);
  const Extent kept = strip_extent(text.as_string(), characters);
  return Value::string(text.traced().substring(kept.begin, kept.size));
}

Value to_string(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("this filter", arguments, {});
  return to_text(input);
}

Value replace_text(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'replace'", arguments, {"old", "new", "count"}, 2);
  const int64_t limit = parameters.optional_integer(2).value_or(-1);
  return Value::string(
      replace(str_of(input), str_of(parameters.value(0)), str_of(parameters.value(1)), limit));
}

/// Indents every line but the first (unless asked for) and the empty ones (likewise).
std::string indent(std::string_view text, std::string_view indentation, bool first, bool blank) {
  // The original appends a newline, so that a final line break leaves an empty last line.
  const std::vector<std::string> lines = split_lines(std::string(text) + "\n", false);
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result += '\n';
    const bool wanted = i == 0 ? first : blank || !lines[i].empty();
    if (wanted) result += indentation;
    result += lines[i];
    require_text_size(result.size());
  }
  return result;
}

Value indent_text(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'indent'", arguments, {"width", "first", "blank"});
  const Value width = parameters.value(0, Value::integer(4));
  std::string indentation = width.is_string() ? width.as_string() : "";
  if (!width.is_string()) {
    const auto size = static_cast<size_t>(std::max<int64_t>(0, parameters.integer(0, 4)));
    require_text_size(size);
    indentation.assign(size, ' ');
  }
  if (!require_defined(input).is_string()) {
    throw OperationError("filter 'indent' takes a string, not '" + type_name(input) + "'");
  }
  return Value::string(
      indent(input.as_string(), indentation, parameters.flag(1), parameters.flag(2)));
}

Value center(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto width =
      std::max<int64_t>(0, Parameters("filter 'center'", arguments, {"width"}).integer(0, 80));
  return Value::string(pad(str_of(input), '^', static_cast<size_t>(width)));
}

Value format_text(Evaluator&, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    throw OperationError("filter 'format' takes positional or named arguments, not both");
  }
  if (arguments.named.empty()) {
    return Value::string(percent_format(str_of(input), Value::tuple(arguments.positional)));
  }
  Dict named;
  for (const auto& [name, value] : arguments.named) named.set(Value::string(name), value);
  return Value::string(percent_format(str_of(input), Value::dict(std::move(named))));
}

Value truncate(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      "filter 'truncate'", arguments, {"length", "killwords", "end", "leeway"});
  const std::string end = parameters.text(2, "...");
  const auto length = parameters.integer(0, 255);
  const auto end_length = static_cast<int64_t>(length_of(end));
  const int64_t leeway = parameters.optional_integer(3).value_or(5);
  if (length < end_length || leeway < 0)
    throw OperationError("filter 'truncate': the length is too small");
  const auto size = static_cast<int64_t>(len(input));
  if (size - leeway <= length) return input;
  if (!input.is_string())
    throw OperationError("filter 'truncate' takes a string, not '" + type_name(input) + "'");
  const std::string& text = input.as_string();
  std::string kept = text.substr(0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!parameters.flag(1)) kept.resize(std::min(kept.rfind(' '), kept.size()));
  return Value::string(kept + end);
}

Value count_words(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'wordcount'", arguments, {});
  const std::string text = str_of(input);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const bool word = is_word(next_code_point(text, i));
    if (word && !inside) ++words;
    inside = word;
  }
  return Value::integer(words);
}

Value wrap(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'wordwrap'",
                              arguments,
                              {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  WrapOptions options;
  options.width = parameters.integer(0, options.width);
  options.break_long_words = parameters.flag(1, true);
  options.break_on_hyphens = parameters.flag(3, true);
  const std::string line_break = parameters.optional_text(2).value_or("\n");
  if (!require_defined(input).is_string())
    throw OperationError("filter 'wordwrap' takes a string, not '" + type_name(input) + "'");
  std::string wrapped;
  const std::vector<std::string> lines = split_lines(input.as_string(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) wrapped += line_break;
    const std::vector<std::string> parts = wrap_words(lines[i], options);
    for (size_t j = 0; j < parts.size(); ++j) {
      if (j > 0) wrapped += line_break;
      wrapped += parts[j];
      require_text_size(wrapped.size());
    }
  }
  return Value::string(std::move(wrapped));
}

Value pretty_print(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'pprint'", arguments, {});
  return Value::string(pformat(input));
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '\'': escaped += "&#39;"; break;
      case '"': escaped += "&#34;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

Value escape(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'escape'", arguments, {});
  return Value::string(escape_html(str_of(input)));
}

/// RFC 3986's percent encoding of everything but letters, digits, "_.-~" and `safe`.
std::string quote(std::string_view text, std::string_view safe) {
  static const char digits[] = "0123456789ABCDEF";
  std::string quoted;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (byte < 0x80 && is_word(byte)) || c == '.' || c == '-' || c == '~';
    if (is_plain || safe.find(c) != std::string_view::npos) {
      quoted += c;
    } else {
      quoted += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return quoted;
}

std::string quote_for_query(const Value& value) {
  return replace(quote(str_of(value), ""), "%20", "+", -1);
}

Value encode_url(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'urlencode'", arguments, {});
  if (require_defined(input).is_string() || !is_iterable(input))
    return Value::string(quote(str_of(input), "/"));
  std::string query;
  const auto add = [&query](const Value& key, const Value& value) {
    if (!query.empty()) query += '&';
    query += quote_for_query(key) + '=' + quote_for_query(value);
  };
  if (input.is_dict()) {
    for (const auto& [key, value] : input.as_dict().entries()) add(key, value);
    return Value::string(std::move(query));
  }
  for (const Value& pair : iterate(input)) {
    const List items = iterate(pair);
    if (items.size() != 2) throw OperationError("filter 'urlencode' takes pairs of key and value");
    add(items[0], items[1]);
  }
  return Value::string(std::move(query));
}

Value xml_attributes(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'xmlattr'", arguments, {"autospace"});
  if (!require_defined(input).is_dict())
    throw OperationError("filter 'xmlattr' takes a dict, not '" + type_name(input) + "'");
  std::string text;
  for (const auto& [key, value] : input.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) throw OperationError("filter 'xmlattr' takes names that are strings");
    const std::string& name = key.as_string();
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      throw OperationError("'" + name + "' cannot be the name of an attribute");
    if (!text.empty()) text += ' ';
    text += escape_html(name) + "=\"" + escape_html(str_of(value)) + '"';
  }
  if (!text.empty() && parameters.flag(0, true)) text.insert(0, " ");
  return Value::string(std::move(text));
}

/// The text without what stands between `open` and the next `close`.
std::string without(std::string_view text, std::string_view open, std::string_view close) {
  std::string kept;
  while (true) {
    const size_t begin = text.find(open);
    const size_t end =
        begin == std::string_view::npos ? begin : text.find(close, begin + open.size());
    if (end == std::string_view::npos) break;
    kept += text.substr(0, begin);
    text.remove_prefix(end + close.size());
  }
  return kept += text;
}

/// The character that an entity such as "lt" or "#39" names, or nothing.
std::string entity_text(std::string_view name) {
  static const std::pair<std::string_view, std::string_view> entities[] = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}, {"nbsp", "\u00A0"}};
  for (const auto& [entity, text] : entities) {
    if (name == entity) return std::string(text);
  }
  if (name.size() < 2 || name[0] != '#') return "";
  const bool hexadecimal = name[1] == 'x' || name[1] == 'X';
  name.remove_prefix(hexadecimal ? 2 : 1);
  uint32_t number = 0;
  const auto read =
      std::from_chars(name.data(), name.data() + name.size(), number, hexadecimal ? 16 : 10);
  if (name.empty() || read.ptr != name.data() + name.size()) return "";
  std::string text;
  append_code_point(text, read.ec == std::errc() ? static_cast<int32_t>(number) : 0xFFFD);
  return text;
}

std::string unescape_html(std::string_view text) {
  constexpr size_t longest_entity = 12;
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const std::string_view begin = text.substr(i, longest_entity);
    const size_t end = text[i] == '&' ? begin.find(';') : std::string_view::npos;
    const std::string meaning =
        end == std::string_view::npos ? "" : entity_text(begin.substr(1, end - 1));
    if (meaning.empty()) {
      result += text[i++];
    } else {
      result += meaning;
      i += end + 1;
    }
  }
  return result;
}

Value strip_tags(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'striptags'", arguments, {});
  const std::string text = without(without(str_of(input), "<!--", "-->"), "<", ">");
  return Value::string(unescape_html(forge::join(split_text(text), " ")));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable filters = {
      {"escape", escape},
      {"e", escape},
      {"forceescape", escape},
      {"urlencode", encode_url},
      {"xmlattr", xml_attributes},
      {"striptags", strip_tags},
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title>},
      {"trim", trim},
      {"string", to_string},
      {"safe", to_string},
      {"replace", replace_text},
      {"indent", indent_text},
      {"center", center},
      {"format", format_text},
      {"truncate", truncate},
      {"wordcount", count_words},
      {"wordwrap", wrap},
      {"pprint", pretty_print},
  };
  return filters;
}

}  // namespace forge::jinja
