#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/python/value.h"

namespace forge::python {

/// Python's `[[fill]align][sign][#][0][width][,][.precision][type]`.
struct FormatSpecification {
  std::string fill = " ";     ///< one code point
  std::optional<char> align;  ///< '<', '>', '^' or '=' (padding behind the sign)
  char sign = 0;              ///< '+', ' ', or 0: only a minus
  bool alternate = false;     ///< '#'
  bool zero_padded = false;   ///< '0' before the width and no alignment
  size_t width = 0;           ///< in code points
  char grouping = 0;          ///< ',' or '_'
  std::optional<int> precision;
  char type = 0;

  /// Throws OperationError for what is no specification.
  static FormatSpecification parse(std::string_view text);

  std::string sign_of(bool negative) const;
  /// `text` cut to the precision.
  std::string truncated(const std::string& text) const;
  /// prefix + text, padded to the width.
  std::string pad(const std::string& text, const std::string& prefix, char alignment) const;
  /// sign and prefix + digits in groups + rest, padded to the width.
  std::string pad_number(const std::string& prefix,
                         std::string digits,
                         const std::string& rest,
                         int group) const;
};

/// Appends chr(number); throws OperationError outside of Unicode.
void append_character(std::string& text, int64_t number);

/// str.format: `format` with its `{}` fields replaced by the arguments.
std::string brace_format(std::string_view format, const Arguments& arguments);

/// format(value, specification) of Python, e.g. "#^40", "08.3f", ",".
std::string format_value(const Value& value, std::string_view specification);

/// `format % values` of Python; `values` is a tuple, a dict (for `%(key)s`) or one value.
std::string percent_format(std::string_view format, const Value& values);

}  // namespace forge::python
