#include <algorithm>
#include <charconv>

#include "core/templating/filters.h"
#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"
#include "core/templating/python_text.h"
#include "core/templating/string_functions.h"
#include "core/templating/unicode.h"

namespace forge::templating {
namespace {

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
  std::string joined;
  for (const std::string& word : split_text(text, nullptr, -1))
    joined += (joined.empty() ? "" : " ") + word;
  return Value::string(unescape_html(joined));
}

}  // namespace

const FilterTable& web_filters() {
  static const FilterTable filters = {{"escape", escape},
                                      {"e", escape},
                                      {"forceescape", escape},
                                      {"urlencode", encode_url},
                                      {"xmlattr", xml_attributes},
                                      {"striptags", strip_tags}};
  return filters;
}

}  // namespace forge::templating
