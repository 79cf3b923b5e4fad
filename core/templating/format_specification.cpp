#include "core/templating/format_specification.h"

#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"

namespace forge::templating {
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
                                     char where) const {
  const size_t size = length_of(std::string_view(text)) + prefix.size();
  const size_t missing = width > size ? width - size : 0;
  switch (where) {
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
  const char where = align.value_or('>');
  if (!grouping) return pad(digits + rest, prefix, where);
  std::string number = grouped(digits, grouping, group);
  // Zeros that fill the width are digits, so that they are grouped too.
  while (where == '=' && fill == "0" && prefix.size() + number.size() + rest.size() < width) {
    digits.insert(digits.begin(), '0');
    number = grouped(digits, grouping, group);
  }
  return pad(number + rest, prefix, where);
}

void append_character(std::string& text, int64_t number) {
  if (number < 0 || number > 0x10FFFF)
    throw OperationError("a character's number lies in 0 … 0x10FFFF");
  append_code_point(text, static_cast<int32_t>(number));
}

}  // namespace forge::templating
