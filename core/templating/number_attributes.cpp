// What Python's int, bool and float have besides their operators.

#include <cmath>

#include "core/templating/attributes.h"
#include "core/templating/objects.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"

namespace forge::templating {
namespace {

Value zero_like(const Value& number) {
  return number.is_integral() ? Value::integer(0) : Value::real(0);
}

Value bit_length(const Value& number) {
  int64_t length = 0;
  for (int64_t rest = number.as_integer(); rest != 0; rest /= 2) ++length;
  return Value::integer(length);
}

Value is_whole(const Value& number) {
  return Value::boolean(std::isfinite(number.as_real()) &&
                        std::floor(number.as_real()) == number.as_real());
}

/// A method without arguments.
Value method(const std::string& name, const Value& number, Value (*body)(const Value&)) {
  return make_function(name, [name, number, body](Evaluator&, const Arguments& arguments) {
    Parameters(name + "()", arguments, {});
    return body(number);
  });
}

}  // namespace

std::optional<Value> number_attribute(const Value& number, const std::string& name) {
  if (name == "real") return unary_plus(number);
  if (name == "imag") return zero_like(number);
  if (name == "conjugate") return method(name, number, unary_plus);
  if (!number.is_integral())
    return name == "is_integer" ? std::optional<Value>(method(name, number, is_whole))
                                : std::nullopt;
  if (name == "numerator") return unary_plus(number);
  if (name == "denominator") return Value::integer(1);
  if (name == "bit_length") return method(name, number, bit_length);
  return std::nullopt;
}

}  // namespace forge::templating
