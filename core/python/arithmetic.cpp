#include "core/python/operators.h"

#include <cmath>

#include "core/python/format.h"
#include "core/python/operation.h"

namespace forge::python {
namespace {

[[noreturn]] void refuse_overflow() {
  throw OperationError("integer result does not fit 64 bits", "write one operand as a float");
}

[[noreturn]] void refuse_zero() { throw OperationError("division by zero"); }

/// Quotient rounded towards minus infinity, with the remainder that has the divisor's sign.
std::pair<int64_t, int64_t> floor_divide(int64_t a, int64_t b) {
  if (b == 0) refuse_zero();
  if (b == -1) {
    int64_t quotient = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &quotient)) refuse_overflow();
    return {quotient, 0};
  }
  int64_t quotient = a / b, remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return {quotient, remainder};
}

/// CPython's float_divmod.
std::pair<double, double> floor_divide(double a, double b) {
  if (b == 0) refuse_zero();
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return {floored, remainder};
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) refuse_overflow();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_overflow();
  }
  return result;
}

Value real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) {
    throw OperationError("0.0 cannot be raised to a negative power");
  }
  if (base < 0 && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    throw OperationError("a negative number cannot be raised to a fraction");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    throw OperationError("float result is too large");
  }
  return Value::real(result);
}

Value calculate_integers(BinaryOperator operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (operation) {
    case BinaryOperator::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case BinaryOperator::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case BinaryOperator::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case BinaryOperator::divide:
      if (b == 0) refuse_zero();
      // The long double holds 64-bit integers exactly, so that this rounds once, or nearly so.
      return Value::real(
          static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case BinaryOperator::floor_divide: result = floor_divide(a, b).first; break;
    case BinaryOperator::modulo: result = floor_divide(a, b).second; break;
    case BinaryOperator::power:
      if (b < 0) return real_power(static_cast<double>(a), static_cast<double>(b));
      result = integer_power(a, b);
      break;
  }
  if (overflow) refuse_overflow();
  return Value::integer(result);
}

Value calculate_reals(BinaryOperator operation, double a, double b) {
  switch (operation) {
    case BinaryOperator::add: return Value::real(a + b);
    case BinaryOperator::subtract: return Value::real(a - b);
    case BinaryOperator::multiply: return Value::real(a * b);
    case BinaryOperator::divide:
      if (b == 0) refuse_zero();
      return Value::real(a / b);
    case BinaryOperator::floor_divide: return Value::real(floor_divide(a, b).first);
    case BinaryOperator::modulo: return Value::real(floor_divide(a, b).second);
    case BinaryOperator::power: return real_power(a, b);
  }
  return Value();
}

Value concatenate(const Value& left, const Value& right) {
  if (left.is_string()) {
    require_text_size(left.as_string().size() + right.as_string().size());
    TracedText joined = left.traced();
    joined.append(right.traced(), {});
    return Value::string(std::move(joined));
  }
  List items = left.items();
  require_list_size(items.size() + right.items().size());
  items.insert(items.end(), right.items().begin(), right.items().end());
  return left.kind() == Value::Kind::list ? Value::list(std::move(items))
                                          : Value::tuple(std::move(items));
}

Value repeat(const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  size_t size = 0;
  const size_t unit = value.is_string() ? value.as_string().size() : value.items().size();
  if (__builtin_mul_overflow(unit, count, &size)) size = SIZE_MAX;
  if (value.is_string()) {
    require_text_size(size);
    std::string text;
    text.reserve(size);
    if (unit > 0) text = value.as_string().substr(0, size);
    while (text.size() < size) text.append(text, 0, std::min(text.size(), size - text.size()));
    return Value::string(std::move(text));
  }
  require_list_size(size);
  const List unit_items = value.items();
  List items;
  items.reserve(size);
  while (items.size() < size) items.insert(items.end(), unit_items.begin(), unit_items.end());
  return value.kind() == Value::Kind::list ? Value::list(std::move(items))
                                           : Value::tuple(std::move(items));
}

}  // namespace

Value calculate(BinaryOperator operation, const Value& left, const Value& right) {
  if (left.is_integral() && right.is_integral()) {
    return calculate_integers(operation, left.as_integer(), right.as_integer());
  }
  return calculate_reals(operation, left.as_real(), right.as_real());
}

std::optional<Value> combine(BinaryOperator operation, const Value& left, const Value& right) {
  const auto repeats = [](const Value& value) { return value.is_string() || value.is_sequence(); };
  switch (operation) {
    case BinaryOperator::add:
      if (repeats(left) && left.kind() == right.kind()) return concatenate(left, right);
      return std::nullopt;
    case BinaryOperator::multiply:
      if (repeats(left) && right.is_integral()) return repeat(left, right.as_integer());
      if (left.is_integral() && repeats(right)) return repeat(right, left.as_integer());
      return std::nullopt;
    case BinaryOperator::modulo:
      if (left.is_string()) return Value::string(percent_format(left.as_string(), right));
      return std::nullopt;
    default: return std::nullopt;
  }
}

Value negate(const Value& value) {
  if (require_defined(value).is_integral()) {
    return calculate_integers(BinaryOperator::subtract, 0, value.as_integer());
  }
  if (value.is_number()) return Value::real(-value.as_real());
  throw OperationError("bad operand type for unary -: '" + type_name(value) + "'");
}

Value unary_plus(const Value& value) {
  if (require_defined(value).is_integral()) return Value::integer(value.as_integer());
  if (value.is_number()) return value;
  throw OperationError("bad operand type for unary +: '" + type_name(value) + "'");
}

}  // namespace forge::python
