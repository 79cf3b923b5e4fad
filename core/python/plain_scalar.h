#pragma once

#include <cstdint>
#include <string_view>

namespace forge::python {

/// What a plain (unquoted) scalar means in YAML 1.1, as PyYAML resolves it.
struct PlainScalar {
  enum class Kind {
    null,
    boolean,
    integer,
    real,
    string,
    timestamp,
    merge,  ///< `<<`
    value,  ///< `=`
  };
  Kind kind = Kind::string;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  bool overflow = false;  ///< an integer that does not fit 64 bits
};

/// Floats need a dot and a signed exponent (`1e-3` is a string), `010` is octal, `1_000` and
/// `1:30` (base 60) are integers, yes/no/on/off are booleans.
PlainScalar resolve_plain_scalar(std::string_view text);

/// The number that digits with a point or an exponent write; infinity or zero where it is out of
/// range, as 1e999 is.
double read_decimal(std::string_view text);

}  // namespace forge::python
