#include "core/python/plain_scalar.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <string>

#include "core/python/unicode.h"

namespace forge::python {
namespace {

bool is_digit_or_underscore(char c) { return is_ascii_digit(c) || c == '_'; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

template <typename Predicate>
size_t count_leading(std::string_view text, Predicate matches) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), matches) - text.begin());
}

template <typename Predicate>
bool all(std::string_view text, Predicate matches) {
  return !text.empty() && count_leading(text, matches) == text.size();
}

/// Skips `:[0-5]?[0-9]` one or more times; false where there is none.
bool skip_base_60_digits(std::string_view& text) {
  bool found = false;
  while (text.size() >= 2 && text[0] == ':' && is_ascii_digit(text[1])) {
    const bool two = text.size() >= 3 && text[1] <= '5' && is_ascii_digit(text[2]);
    text.remove_prefix(two ? 3 : 2);
    found = true;
  }
  return found;
}

/// `[eE][-+][0-9]+`, or nothing at all.
bool is_exponent_or_empty(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() < 3 || (text[0] != 'e' && text[0] != 'E') || (text[1] != '-' && text[1] != '+'))
    return false;
  return all(text.substr(2), is_ascii_digit);
}

bool is_float(std::string_view text) {
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return true;
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  std::string_view body = text.substr(has_sign ? 1 : 0);
  if (is_one_of(body, {".inf", ".Inf", ".INF"})) return true;
  if (body.empty()) return false;
  if (body[0] == '.') {
    if (has_sign || body.size() < 2 || !is_ascii_digit(body[1])) return false;
    body.remove_prefix(1);
    return is_exponent_or_empty(body.substr(count_leading(body, is_digit_or_underscore)));
  }
  if (!is_ascii_digit(body[0])) return false;
  body.remove_prefix(count_leading(body, is_digit_or_underscore));
  const bool base_60 = skip_base_60_digits(body);
  if (body.empty() || body[0] != '.') return false;
  body.remove_prefix(1);
  body.remove_prefix(count_leading(body, is_digit_or_underscore));
  return base_60 ? body.empty() : is_exponent_or_empty(body);
}

bool is_written_integer(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || !is_ascii_digit(text[0])) return false;
  if (text == "0") return true;
  const std::string_view prefix = text.substr(0, 2);
  if (prefix == "0b")
    return all(text.substr(2), [](char c) { return c == '0' || c == '1' || c == '_'; });
  if (prefix == "0x") {
    return all(text.substr(2), [](char c) {
      return is_digit_or_underscore(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    });
  }
  if (text[0] == '0')
    return all(text.substr(1), [](char c) { return (c >= '0' && c <= '7') || c == '_'; });
  text.remove_prefix(count_leading(text, is_digit_or_underscore));
  if (text.empty()) return true;
  return skip_base_60_digits(text) && text.empty();
}

/// Reads a pattern where 'd' is a digit and anything else itself.
bool skip_pattern(std::string_view& text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == 'd' ? !is_ascii_digit(text[i]) : text[i] != pattern[i]) return false;
  }
  text.remove_prefix(pattern.size());
  return true;
}

bool skip_one_or_two_digits(std::string_view& text) {
  return skip_pattern(text, "dd") || skip_pattern(text, "d");
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(count_leading(text, [](char c) { return c == ' ' || c == '\t'; }));
}

bool is_zone_or_empty(std::string_view text) {
  skip_blanks(text);
  if (text.empty() || text == "Z") return true;
  if (text[0] != '-' && text[0] != '+') return false;
  text.remove_prefix(1);
  if (!skip_one_or_two_digits(text)) return false;
  return text.empty() || (skip_pattern(text, ":dd") && text.empty());
}

bool is_timestamp(std::string_view text) {
  std::string_view date = text;
  if (skip_pattern(date, "dddd-dd-dd") && date.empty()) return true;
  if (!skip_pattern(text, "dddd-") || !skip_one_or_two_digits(text)) return false;
  if (!skip_pattern(text, "-") || !skip_one_or_two_digits(text) || text.empty()) return false;
  if (text[0] == 'T' || text[0] == 't') {
    text.remove_prefix(1);
  } else {
    const size_t before = text.size();
    skip_blanks(text);
    if (text.size() == before) return false;
  }
  if (!skip_one_or_two_digits(text) || !skip_pattern(text, ":dd:dd")) return false;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    text.remove_prefix(count_leading(text, is_ascii_digit));
  }
  return is_zone_or_empty(text);
}

std::string without_underscores(std::string_view text) {
  std::string digits(text);
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  return digits;
}

/// Calls `add` with each part of a base-60 number, left to right.
template <typename Add>
void for_each_base_60_part(std::string_view text, Add add) {
  while (true) {
    const size_t colon = text.find(':');
    add(text.substr(0, colon));
    if (colon == std::string_view::npos) return;
    text.remove_prefix(colon + 1);
  }
}

/// Value of unsigned digits (with base prefix or ':'); false when it does not fit 64 bits.
bool read_magnitude(std::string_view text, uint64_t& magnitude) {
  magnitude = 0;
  if (text.find(':') != std::string_view::npos) {
    bool fits = true;
    for_each_base_60_part(text, [&](std::string_view part) {
      uint64_t digit = 0;
      fits = fits &&
             std::from_chars(part.data(), part.data() + part.size(), digit).ec == std::errc() &&
             !__builtin_mul_overflow(magnitude, uint64_t{60}, &magnitude) &&
             !__builtin_add_overflow(magnitude, digit, &magnitude);
    });
    return fits;
  }
  const std::string_view prefix = text.substr(0, 2);
  const int base = prefix == "0b" ? 2 : prefix == "0x" ? 16 : text[0] == '0' ? 8 : 10;
  if (base == 2 || base == 16) text.remove_prefix(2);
  if (text.empty()) return true;
  return std::from_chars(text.data(), text.data() + text.size(), magnitude, base).ec == std::errc();
}

void read_integer(std::string_view text, PlainScalar& scalar) {
  std::string digits = without_underscores(text);
  const bool negative = digits[0] == '-';
  if (negative || digits[0] == '+') digits.erase(0, 1);
  uint64_t magnitude = 0;
  const bool fits = read_magnitude(digits, magnitude);
  const uint64_t limit = uint64_t{1} << 63;
  scalar.overflow = !fits || magnitude > limit || (magnitude == limit && !negative);
  if (!scalar.overflow)
    scalar.integer = static_cast<int64_t>(negative ? ~magnitude + 1 : magnitude);
}

double read_float(std::string_view text) {
  std::string digits = without_underscores(text);
  const double sign = digits[0] == '-' ? -1 : 1;
  if (digits[0] == '-' || digits[0] == '+') digits.erase(0, 1);
  if (digits.size() > 1 && digits[0] == '.' && !is_ascii_digit(digits[1])) {
    const bool infinite = digits[1] == 'i' || digits[1] == 'I';
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  double value = 0;
  for_each_base_60_part(digits,
                        [&](std::string_view part) { value = value * 60 + read_decimal(part); });
  return sign * value;
}

}  // namespace

double read_decimal(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) value = std::strtod(std::string(text).c_str(), nullptr);
  return value;
}

PlainScalar resolve_plain_scalar(std::string_view text) {
  PlainScalar scalar;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) {
    scalar.kind = PlainScalar::Kind::null;
  } else if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) {
    scalar.kind = PlainScalar::Kind::boolean;
    scalar.boolean = true;
  } else if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})) {
    scalar.kind = PlainScalar::Kind::boolean;
  } else if (text == "<<") {
    scalar.kind = PlainScalar::Kind::merge;
  } else if (text == "=") {
    scalar.kind = PlainScalar::Kind::value;
  } else if (is_float(text)) {
    scalar.kind = PlainScalar::Kind::real;
    scalar.real = read_float(text);
  } else if (is_written_integer(text)) {
    scalar.kind = PlainScalar::Kind::integer;
    read_integer(text, scalar);
  } else if (is_timestamp(text)) {
    scalar.kind = PlainScalar::Kind::timestamp;
  }
  return scalar;
}

}  // namespace forge::python
