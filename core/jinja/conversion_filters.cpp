#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/python/format.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/string_functions.h"
#include "core/python/unicode.h"
#include "core/python/value.h"
#include "core/python/yaml_text.h"

namespace forge::jinja {

namespace {

void append_unit(std::string& text, unsigned unit) {
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", unit & 0xFFFFu);
  text += escape;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    switch (c) {
      case '"': result += "\\\""; continue;
      case '\\': result += "\\\\"; continue;
      case '\n': result += "\\n"; continue;
      case '\r': result += "\\r"; continue;
      case '\t': result += "\\t"; continue;
      case '\b': result += "\\b"; continue;
      case '\f': result += "\\f"; continue;
      default: break;
    }
    require_text_size(result.size());
    const bool html = c == '<' || c == '>' || c == '&' || c == '\'';
    if (c >= 0x10000) {
      append_unit(result, 0xD800u + static_cast<unsigned>((c - 0x10000) >> 10));
      append_unit(result, 0xDC00u + static_cast<unsigned>((c - 0x10000) & 0x3FF));
    } else if (c < 0x20 || c > 0x7E || html) {
      append_unit(result, static_cast<unsigned>(c));
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + "\"";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return shortest(value);
}

/// What Jinja's `tojson` writes: json.dumps with sorted keys, non-ASCII escaped, and the characters
/// that mean something in HTML escaped too.
class JsonWriter {
 public:
  explicit JsonWriter(std::optional<int64_t> indentation) : indentation_(indentation) {
    if (indentation && *indentation > 100)
      throw OperationError("filter 'tojson': the indentation is too large");
  }

  std::string write(const Value& value, int level) {
    charge_walk(cost_of_value);
    if (level > 100)
      throw OperationError("this value is nested too deeply for JSON, or contains itself");
    switch (require_defined(value).kind()) {
      case Value::Kind::none: return "null";
      case Value::Kind::boolean: return value.as_boolean() ? "true" : "false";
      case Value::Kind::integer: return std::to_string(value.as_integer());
      case Value::Kind::real: return number(value.as_real());
      case Value::Kind::string: return json_string(value.as_string());
      case Value::Kind::list:
      case Value::Kind::tuple: return write_list(value.items(), level);
      case Value::Kind::dict: return write_dict(value.as_dict(), level);
      default:
        throw OperationError("a value of type '" + type_name(value) +
                             "' cannot be written as JSON");
    }
  }

 private:
  std::string write_list(const List& items, int level) {
    std::string text;
    for (const Value& item : items) append(text, write(item, level + 1), level + 1);
    return enclose("[", text, "]", level);
  }

  std::string write_dict(const Dict& dict, int level) {
    std::vector<Dict::Entry> entries = dict.entries();
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return less(a.first, b.first);
    });
    std::string text;
    for (const auto& [key, value] : entries)
      append(text, key_text(key) + ": " + write(value, level + 1), level + 1);
    return enclose("{", text, "}", level);
  }

  std::string key_text(const Value& key) {
    if (key.is_string()) return json_string(key.as_string());
    if (key.is_none() || key.is_number()) return "\"" + write(key, 0) + "\"";
    throw OperationError("keys must be str, int, float, bool or None, not " + type_name(key));
  }

  /// Appends an item of a container to those before it.
  void append(std::string& items, const std::string& item, int level) const {
    if (!items.empty()) items += indentation_ ? "," + line_break(level) : ", ";
    items += item;
    require_text_size(items.size());
  }

  std::string enclose(const char* open,
                      const std::string& items,
                      const char* close,
                      int level) const {
    if (items.empty()) return std::string(open) + close;
    return open + line_break(level + 1) + items + line_break(level) + close;
  }

  std::string line_break(int level) const {
    if (!indentation_) return "";
    const auto width =
        static_cast<size_t>(std::max<int64_t>(0, *indentation_)) * static_cast<size_t>(level);
    return "\n" + std::string(width, ' ');
  }

  std::optional<int64_t> indentation_;
};

/// Digits with single underscores between them, without the underscores; nothing for others.
std::optional<std::string> digits_of_number(std::string_view text) {
  charge_text(4 * text.size());
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool inside = i > 0 && i + 1 < text.size() && text[i - 1] != '_';
    if (text[i] == '_' && !inside) return std::nullopt;
    if (text[i] != '_') digits += text[i];
  }
  return digits;
}

std::string_view stripped(std::string_view text) {
  const Extent extent = strip_extent(text);
  return text.substr(extent.begin, extent.size);
}

/// Python's float(text).
std::optional<double> parse_real(std::string_view text) {
  const auto digits = digits_of_number(stripped(text));
  if (!digits || digits->empty()) return std::nullopt;
  std::string body = to_lower(*digits);
  const bool negative = body[0] == '-';
  if (negative || body[0] == '+') body.erase(0, 1);
  const double sign = negative ? -1 : 1;
  if (body == "inf" || body == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (body == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string::npos)
    return std::nullopt;
  double value = 0;
  const auto read = std::from_chars(body.data(), body.data() + body.size(), value);
  if (read.ec == std::errc::invalid_argument || read.ptr != body.data() + body.size())
    return std::nullopt;
  if (read.ec != std::errc()) value = std::strtod(body.c_str(), nullptr);
  return sign * value;
}

/// Python's int(text, base); throws for a number that does not fit 64 bits.
std::optional<int64_t> parse_integer(std::string_view text, int base) {
  const auto digits = digits_of_number(stripped(text));
  if (!digits || digits->empty() || base < 2 || base > 36) return std::nullopt;
  std::string body = to_lower(*digits);
  const bool negative = body[0] == '-';
  if (negative || body[0] == '+') body.erase(0, 1);
  const std::string prefix = body.substr(0, 2);
  const bool prefixed = (base == 16 && prefix == "0x") || (base == 8 && prefix == "0o") ||
                        (base == 2 && prefix == "0b");
  if (prefixed) body.erase(0, 2);
  if (body.empty() || body[0] == '-' || body[0] == '+') return std::nullopt;
  if (negative) body.insert(0, "-");
  int64_t value = 0;
  const auto read = std::from_chars(body.data(), body.data() + body.size(), value, base);
  if (read.ptr != body.data() + body.size()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range)
    throw OperationError("'" + std::string(text) + "' does not fit 64 bits");
  return read.ec == std::errc() ? std::optional<int64_t>(value) : std::nullopt;
}

/// Python's int(number): towards zero.
std::optional<int64_t> truncate(double number) {
  if (!std::isfinite(number)) {
    if (std::isnan(number)) return std::nullopt;
    throw OperationError("cannot convert float infinity to integer");
  }
  if (!(number > -9.3e18 && number < 9.3e18) || std::fabs(number) >= 9223372036854775808.0) {
    throw OperationError("integer result does not fit 64 bits");
  }
  return static_cast<int64_t>(number);
}

Value to_integer(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'int'", arguments, {"default", "base"});
  const Value fallback = parameters.value(0, Value::integer(0));
  require_defined(input);
  std::optional<int64_t> number;
  if (input.is_integral()) {
    number = input.as_integer();
  } else if (input.is_number()) {
    number = truncate(input.as_real());
  } else if (input.is_string()) {
    number = parse_integer(input.as_string(), static_cast<int>(parameters.integer(1, 10)));
    const auto real = number ? std::nullopt : parse_real(input.as_string());
    if (real) number = truncate(*real);
  }
  return number ? Value::integer(*number) : fallback;
}

Value to_real(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'float'", arguments, {"default"});
  if (require_defined(input).is_number()) return Value::real(input.as_real());
  const auto number = input.is_string() ? parse_real(input.as_string()) : std::nullopt;
  return number ? Value::real(*number) : parameters.value(0, Value::real(0));
}

Value absolute(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'abs'", arguments, {});
  if (!require_defined(input).is_number()) {
    throw OperationError("bad operand type for abs(): '" + type_name(input) + "'");
  }
  const bool negative =
      input.is_integral() ? input.as_integer() < 0 : std::signbit(input.as_real());
  return negative ? negate(input) : unary_plus(input);
}

/// Python's round(number, digits): exact decimal value, halves to even.
double round_decimally(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  if (digits < -300) return std::copysign(0.0, number);
  if (digits >= 0) {
    const std::string text = format_value(Value::real(number), "." + std::to_string(digits) + "f");
    return std::strtod(text.c_str(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / scale) * scale;
}

int64_t round_integer(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  int64_t scale = 1;
  for (; digits < 0; ++digits) scale *= 10;
  int64_t remainder = number % scale;
  if (remainder < 0) remainder += scale;
  int64_t below = 0;
  if (__builtin_sub_overflow(number, remainder, &below))
    throw OperationError("integer result does not fit 64 bits");
  const bool up = remainder * 2 > scale || (remainder * 2 == scale && (below / scale) % 2 != 0);
  if (up && __builtin_add_overflow(below, scale, &below))
    throw OperationError("integer result does not fit 64 bits");
  return below;
}

Value round_number(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'round'", arguments, {"precision", "method"});
  const int64_t digits = parameters.integer(0, 0);
  const std::string method = parameters.text(1, "common");
  if (!require_defined(input).is_number()) {
    throw OperationError("filter 'round' takes a number, not '" + type_name(input) + "'");
  }
  if (method == "common") {
    if (input.is_integral()) return Value::integer(round_integer(input.as_integer(), digits));
    return Value::real(round_decimally(input.as_real(), digits));
  }
  if (method != "ceil" && method != "floor") {
    throw OperationError("filter 'round' knows the methods common, ceil and floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.as_real() * scale;
  if (!std::isfinite(scaled)) throw OperationError("filter 'round' takes a finite number");
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::real((whole + 0.0) / scale);  // Python rounds to an int, which has no -0
}

Value file_size(Evaluator&, const Value& input, const Arguments& arguments) {
  const bool binary = Parameters("filter 'filesizeformat'", arguments, {"binary"}).flag(0);
  const std::optional<double> number = require_defined(input).is_number() ? input.as_real()
                                       : input.is_string() ? parse_real(input.as_string())
                                                           : std::nullopt;
  if (!number) throw OperationError("filter 'filesizeformat' takes a number");
  const double base = binary ? 1024 : 1000;
  if (*number == 1) return Value::string(std::string("1 Byte"));
  if (*number < base) {
    if (std::isinf(*number)) throw OperationError("filter 'filesizeformat' takes a finite number");
    return Value::string(format_value(Value::real(std::trunc(*number) + 0.0), ".0f") + " Bytes");
  }
  static const char letters[] = "kMGTPEZY";
  double unit = base * base;
  size_t index = 0;
  for (; index < 7 && *number >= unit; ++index) unit *= base;
  const std::string prefix = binary && letters[index] == 'k' ? "K" : std::string(1, letters[index]);
  return Value::string(format_value(Value::real(base * *number / unit), ".1f") + " " + prefix +
                       (binary ? "iB" : "B"));
}

Value use_default(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'default'", arguments, {"default_value", "boolean"});
  const bool replaced = input.is_undefined() || (parameters.flag(1) && !is_truthy(input));
  return replaced ? parameters.value(0, Value::string(std::string())) : input;
}

Value to_yaml(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'toyaml'", arguments, {"default"});
  const Value value = input.is_undefined() && parameters.given(0) ? parameters.value(0) : input;
  if (require_defined(value).is_integral()) return Value::string(str_of(value));
  return Value::string(yaml_text(value));
}

Value to_json(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'tojson'", arguments, {"indent"});
  return Value::string(JsonWriter(parameters.optional_integer(0)).write(input, 0));
}

}  // namespace

const FilterTable& conversion_filters() {
  static const FilterTable filters = {
      {"default", use_default},
      {"d", use_default},
      {"toyaml", to_yaml},
      {"tojson", to_json},
      {"int", to_integer},
      {"float", to_real},
      {"abs", absolute},
      {"round", round_number},
      {"filesizeformat", file_size},
  };
  return filters;
}

}  // namespace forge::jinja
