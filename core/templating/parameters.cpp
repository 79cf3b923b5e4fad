#include "core/templating/parameters.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"

namespace forge::templating {

Parameters::Parameters(const std::string& function,
                       const Arguments& arguments,
                       const std::vector<std::string>& names,
                       size_t required)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names.size()) {
    throw OperationError(function + " takes at most " + std::to_string(names.size()) +
                         " arguments, but " + std::to_string(arguments.positional.size()) +
                         " were given");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw OperationError(function + " has no argument '" + name + "'", did_you_mean(name, names));
    }
    std::optional<Value>& slot = values_[static_cast<size_t>(found - names.begin())];
    if (slot) throw OperationError(function + " got two values for its argument '" + name + "'");
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!values_[i]) throw OperationError(function + " needs an argument '" + names[i] + "'");
  }
}

const Arguments& positional_only(const std::string& function, const Arguments& arguments) {
  if (!arguments.named.empty())
    throw OperationError(function + " takes no named arguments", "give them by their order");
  return arguments;
}

std::string Parameters::where(size_t index) const {
  return "argument '" + names_[index] + "' of " + function_;
}

std::string Parameters::text(size_t index, std::string fallback) const {
  if (!values_[index]) return fallback;
  if (require_defined(*values_[index]).is_string()) return values_[index]->as_string();
  throw OperationError(where(index) + " must be a string, not '" + type_name(*values_[index]) +
                       "'");
}

int64_t Parameters::integer(size_t index, int64_t fallback) const {
  if (!values_[index]) return fallback;
  if (require_defined(*values_[index]).is_integral()) return values_[index]->as_integer();
  throw OperationError(where(index) + " must be an integer, not '" + type_name(*values_[index]) +
                       "'");
}

bool Parameters::flag(size_t index, bool fallback) const {
  return values_[index] ? truth(*values_[index]) : fallback;
}

}  // namespace forge::templating
