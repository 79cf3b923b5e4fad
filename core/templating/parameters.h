#pragma once

#include <string>
#include <vector>

#include "core/templating/value.h"

namespace forge::templating {

/// The arguments of a call, matched to the names of a function's parameters as Python does it.
class Parameters {
 public:
  /// The first `required` names must be given. Throws OperationError for too few or too many
  /// arguments and for unknown or repeated names. "function" may be "filter 'join'".
  Parameters(const std::string& function,
             const Arguments& arguments,
             const std::vector<std::string>& names,
             size_t required = 0);

  bool given(size_t index) const { return values_[index].has_value(); }
  /// The argument, or none.
  Value value(size_t index) const { return values_[index].value_or(Value()); }
  Value value(size_t index, Value fallback) const {
    return values_[index].value_or(std::move(fallback));
  }
  /// Each throws OperationError for an argument of another type.
  std::string text(size_t index, std::string fallback = "") const;
  int64_t integer(size_t index, int64_t fallback = 0) const;
  bool flag(size_t index, bool fallback = false) const;

 private:
  std::string where(size_t index) const;

  std::string function_;
  std::vector<std::string> names_;
  std::vector<std::optional<Value>> values_;
};

/// The arguments as they are; throws OperationError for named ones. Most methods of Python's
/// built-in types do not let their arguments be named.
const Arguments& positional_only(const std::string& function, const Arguments& arguments);

}  // namespace forge::templating
