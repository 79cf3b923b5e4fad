#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "core/templating/value.h"

namespace forge::templating {

/// A failed operation on values, which do not know where in a template they are used. The
/// evaluator turns it into an Error with the place.
struct OperationError : std::runtime_error {
  explicit OperationError(const std::string& message, std::string hint_text = "")
      : std::runtime_error(message), hint(std::move(hint_text)) {}
  std::string hint;
};

/// An undefined value was used.
struct UndefinedError : OperationError {
  explicit UndefinedError(Value value)
      : OperationError(value.as_undefined().message), undefined(std::move(value)) {}
  Value undefined;
};

/// Throws UndefinedError when `value` is undefined.
inline const Value& require_defined(const Value& value) {
  if (value.is_undefined()) throw UndefinedError(value);
  return value;
}

}  // namespace forge::templating
