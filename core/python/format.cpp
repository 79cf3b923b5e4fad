#include "core/python/format.h"

#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/python/attributes.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/unicode.h"

namespace forge::python {
namespace {

bool is_alignment(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

/// Reads digits off the front; nothing where there are none.
std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0, used = 0;
  while (used < text.size() && text[used] >= '0' && text[used] <= '9') {
    number = number * 10 + static_cast<size_t>(text[used++] - '0');
    require_text_size(number);
  }
  text.remove_prefix(used);
  return used > 0 ? std::optional<size_t>(number) : std::nullopt;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

std::string repeated(const std::string& fill, size_t times) {
  std::string text;
  text.reserve(fill.size() * times);
  while (times-- > 0) text += fill;
  return text;
}

std::string grouped(const std::string& digits, char separator, int group) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % static_cast<size_t>(group) == 0) text += separator;
    text += digits[i];
  }
  return text;
}

}  // namespace

FormatSpecification FormatSpecification::parse(std::string_view text) {
  FormatSpecification spec;
  const std::string whole(text);
  bool has_fill = false;
  if (!text.empty()) {
    size_t fill_size = 0;
    next_code_point(text, fill_size);
    if (fill_size < text.size() && is_alignment(text[fill_size])) {
      spec.fill = text.substr(0, fill_size);
      spec.align = text[fill_size];
      has_fill = true;
      text.remove_prefix(fill_size + 1);
    } else if (is_alignment(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  for (const char sign : {'+', '-', ' '}) {
    if (take(text, sign)) spec.sign = sign == '-' ? '\0' : sign;
  }
  spec.alternate = take(text, '#');
  if (take(text, '0')) {
    if (!has_fill) spec.fill = "0";
    spec.zero_padded = !spec.align;
    if (!spec.align) spec.align = '=';
  }
  spec.width = take_number(text).value_or(0);
  if (take(text, ',')) spec.grouping = ',';
  if (take(text, '_')) spec.grouping = '_';
  if (take(text, '.')) {
    const auto precision = take_number(text);
    if (!precision || *precision > 1000)
      throw OperationError("bad precision in format specifier '" + whole + "'");
    spec.precision = static_cast<int>(*precision);
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) throw OperationError("invalid format specifier '" + whole + "'");
  return spec;
}

std::string FormatSpecification::sign_of(bool negative) const {
  if (negative) return "-";
  return sign ? std::string(1, sign) : "";
}

std::string FormatSpecification::truncated(const std::string& text) const {
  return precision ? text.substr(0, byte_offset(text, static_cast<size_t>(*precision))) : text;
}

std::string FormatSpecification::pad(const std::string& text,
                                     const std::string& prefix,
                                     char alignment) const {
  const size_t size = length_of(text) + prefix.size();
  const size_t missing = width > size ? width - size : 0;
  switch (alignment) {
    case '<': return prefix + text + repeated(fill, missing);
    case '^':
      return repeated(fill, missing / 2) + prefix + text + repeated(fill, missing - missing / 2);
    case '=': return prefix + repeated(fill, missing) + text;
    default: return repeated(fill, missing) + prefix + text;
  }
}

std::string FormatSpecification::pad_number(const std::string& prefix,
                                            std::string digits,
                                            const std::string& rest,
                                            int group) const {
  const char alignment = align.value_or('>');
  if (!grouping) return pad(digits + rest, prefix, alignment);
  std::string number = grouped(digits, grouping, group);
  // Zeros that fill the width are digits, so that they are grouped too.
  while (alignment == '=' && fill == "0" && prefix.size() + number.size() + rest.size() < width) {
    digits.insert(digits.begin(), '0');
    number = grouped(digits, grouping, group);
  }
  return pad(number + rest, prefix, alignment);
}

void append_character(std::string& text, int64_t number) {
  if (number < 0 || number > 0x10FFFF)
    throw OperationError("a character's number lies in 0 … 0x10FFFF");
  append_code_point(text, static_cast<int32_t>(number));
}

namespace {

std::string decimal(const char* format, int precision, double number) {
  const int size = std::snprintf(nullptr, 0, format, precision, number);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, precision, number);
  text.pop_back();
  return text;
}

/// "1.200e+05" -> "1.2e+05".
std::string without_trailing_zeros(const std::string& scientific) {
  const size_t exponent = scientific.find('e');
  std::string mantissa = scientific.substr(0, exponent);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.resize(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return mantissa + scientific.substr(exponent);
}

/// Digits of a non-negative finite number, without sign.
std::string real_digits(double number, const FormatSpecification& spec) {
  const int precision = spec.precision.value_or(6);
  switch (spec.type) {
    case 'e': return decimal("%.*e", precision, number);
    case 'E': return decimal("%.*E", precision, number);
    case 'f':
    case 'F': return decimal("%.*f", precision, number);
    case '%': return decimal("%.*f", precision, number * 100) + "%";
    case 'n':
    case 'g': return decimal(spec.alternate ? "%#.*g" : "%.*g", precision, number);
    case 'G': return decimal(spec.alternate ? "%#.*G" : "%.*G", precision, number);
    default: break;
  }
  if (!spec.precision) return shortest(number);
  // Without a type: as 'g', but with at least one digit behind the point.
  const int digits = std::max(precision, 1);
  const std::string text = decimal("%.*g", digits, number);
  if (text.find_first_of(".e") != std::string::npos) return text;
  if (static_cast<int>(text.size()) < digits) return text + ".0";
  return without_trailing_zeros(decimal("%.*e", digits - 1, number));
}

std::string integer_digits(uint64_t magnitude, char type) {
  const unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
  const char* const digits = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[magnitude % base]);
    magnitude /= base;
  } while (magnitude > 0);
  return text;
}

std::string format_integer(int64_t number, FormatSpecification spec) {
  const bool negative = number < 0;
  const uint64_t magnitude =
      negative ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number);
  if (spec.type == 'c') {
    std::string character;
    append_character(character, number);
    spec.type = 's';
    return spec.pad(character, "", spec.align.value_or('<'));
  }
  if (spec.precision) throw OperationError("precision not allowed in integer format specifier");
  std::string prefix = spec.sign_of(negative);
  if (spec.alternate && std::string("boxX").find(spec.type) != std::string::npos) {
    prefix += std::string("0") + spec.type;
  }
  const int group =
      spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X' ? 4 : 3;
  return spec.pad_number(prefix, integer_digits(magnitude, spec.type), "", group);
}

std::string format_real(double number, const FormatSpecification& spec) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  const double magnitude = std::fabs(number);
  std::string digits = std::isnan(number)      ? "nan"
                       : std::isinf(magnitude) ? "inf"
                                               : real_digits(magnitude, spec);
  if (spec.type == 'F' || spec.type == 'E' || spec.type == 'G') {
    if (!std::isfinite(number)) digits = std::isnan(number) ? "NAN" : "INF";
  }
  if (spec.type == '%' && !std::isfinite(number)) digits += "%";
  const size_t end = digits.find_first_not_of("0123456789");
  const std::string rest = end == std::string::npos ? "" : digits.substr(end);
  return spec.pad_number(spec.sign_of(negative), digits.substr(0, end), rest, 3);
}

std::string format_text(const std::string& text, const FormatSpecification& spec) {
  const bool numeric = spec.align == '=' && !spec.zero_padded;
  if (spec.sign || spec.alternate || spec.grouping || numeric) {
    throw OperationError("this format specifier does not fit a string");
  }
  const char align = spec.zero_padded ? '<' : spec.align.value_or('<');
  return spec.pad(spec.truncated(text), "", align);
}

/// Walks one `{…}` field of str.format after another.
class BraceFormatter {
 public:
  explicit BraceFormatter(const Arguments& arguments) : arguments_(arguments) {}

  std::string format(std::string_view format, int depth) {
    if (depth < 0) throw OperationError("max string recursion exceeded in a format");
    std::string text;
    for (size_t i = 0; i < format.size(); ++i) {
      const char c = format[i];
      if (c != '{' && c != '}') {
        text += c;
      } else if (i + 1 < format.size() && format[i + 1] == c) {
        text += c;
        ++i;
      } else if (c == '}') {
        throw OperationError("single '}' encountered in format string");
      } else {
        const size_t end = field_end(format, i + 1);
        text += field(format.substr(i + 1, end - i - 1), depth);
        i = end;
      }
      require_text_size(text.size());
    }
    return text;
  }

 private:
  static size_t field_end(std::string_view format, size_t begin) {
    int open = 1;
    for (size_t i = begin; i < format.size(); ++i) {
      if (format[i] == '{') ++open;
      if (format[i] == '}' && --open == 0) return i;
    }
    throw OperationError("expected '}' before end of format string");
  }

  std::string field(std::string_view field, int depth) {
    const size_t end = std::min(field.find_first_of("!:"), field.size());
    const Value value = lookup(field.substr(0, end));
    std::string_view rest = field.substr(end);
    char conversion = 0;
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
        throw OperationError("expected ':' after conversion specifier");
      }
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    const std::string specification = rest.empty() ? "" : format(rest.substr(1), depth - 1);
    if (conversion == 'r') return format_value(Value::string(repr_of(value)), specification);
    if (conversion == 'a') return format_value(Value::string(ascii_of(value)), specification);
    if (conversion == 's') return format_value(Value::string(str_of(value)), specification);
    if (conversion != 0) throw OperationError("unknown conversion specifier in a format");
    return format_value(value, specification);
  }

  /// The value of "0", "name", "name.attribute[index]" or, automatically numbered, "".
  Value lookup(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(std::string(path.substr(0, end)));
    path.remove_prefix(end);
    while (!path.empty()) {
      if (path[0] == '.') {
        path.remove_prefix(1);
        const size_t stop = std::min(path.find_first_of(".["), path.size());
        value = attribute_of(value, std::string(path.substr(0, stop)));
        path.remove_prefix(stop);
      } else {
        const size_t stop = path.find(']');
        if (path[0] != '[' || stop == std::string_view::npos)
          throw OperationError("bad field in a format");
        const std::string key(path.substr(1, stop - 1));
        const auto number = parse_index(key);
        value = subscript_of(value, number ? Value::integer(*number) : Value::string(key));
        path.remove_prefix(stop + 1);
      }
      require_defined(value);
    }
    return value;
  }

  Value argument(const std::string& name) {
    if (name.empty()) return positional(next_++, Numbering::automatic);
    if (const auto index = parse_index(name))
      return positional(static_cast<size_t>(*index), Numbering::manual);
    if (const Value* value = arguments_.find(name)) return *value;
    throw OperationError("the format names '" + name + "', which is not among the arguments");
  }

  enum class Numbering { none, automatic, manual };

  const Value& positional(size_t index, Numbering numbering) {
    if (numbering_ != Numbering::none && numbering_ != numbering)
      throw OperationError("a format numbers all of its fields or none");
    numbering_ = numbering;
    if (index < arguments_.positional.size()) return arguments_.positional[index];
    throw OperationError("the format has more fields than there are arguments");
  }

  static std::optional<int64_t> parse_index(const std::string& text) {
    if (text.empty() || text.size() > 9) return std::nullopt;
    if (text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    return std::stoll(text);
  }

  const Arguments& arguments_;
  size_t next_ = 0;
  Numbering numbering_ = Numbering::none;
};

}  // namespace

std::string format_value(const Value& value, std::string_view specification) {
  if (specification.empty()) return str_of(value);
  require_defined(value);
  FormatSpecification spec = FormatSpecification::parse(specification);
  const bool real_type =
      spec.type != 0 && std::string("eEfFgG%").find(spec.type) != std::string::npos;
  const bool integer_type =
      spec.type != 0 && std::string("bcdoxXn").find(spec.type) != std::string::npos;
  if (value.is_integral() && (integer_type || spec.type == 0))
    return format_integer(value.as_integer(), spec);
  if (value.is_number() && (real_type || spec.type == 0 || spec.type == 'n')) {
    return format_real(value.as_real(), spec);
  }
  if (value.is_string() && (spec.type == 0 || spec.type == 's'))
    return format_text(value.as_string(), spec);
  if (value.is_number() || value.is_string()) {
    throw OperationError(std::string("unknown format code '") + spec.type +
                         "' for object of type '" + type_name(value) + "'");
  }
  throw OperationError("unsupported format string passed to " + type_name(value));
}

std::string brace_format(std::string_view format, const Arguments& arguments) {
  return BraceFormatter(arguments).format(format, 2);
}

}  // namespace forge::python
