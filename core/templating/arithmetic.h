#pragma once

#include <optional>

#include "core/templating/operators.h"

namespace forge::templating {

/// An operation on two numbers. Integers have 64 bits; leaving them is an error.
Value calculate(BinaryOperator operation, const Value& left, const Value& right);

/// What `+`, `*` and `%` mean for texts and sequences; nothing where they mean nothing.
std::optional<Value> combine(BinaryOperator operation, const Value& left, const Value& right);

}  // namespace forge::templating
