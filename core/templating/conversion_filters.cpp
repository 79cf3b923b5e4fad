#include <cmath>

#include "core/templating/filters.h"
#include "core/templating/json_text.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"
#include "core/templating/python_text.h"
#include "core/templating/yaml_text.h"

namespace forge::templating {
namespace {

Value use_default(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'default'", arguments, {"default_value", "boolean"});
  const bool replaced = input.is_undefined() || (parameters.flag(1) && !truth(input));
  return replaced ? parameters.value(0, Value::string(std::string())) : input;
}

Value to_yaml(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'toyaml'", arguments, {"default"});
  const Value value = input.is_undefined() && parameters.given(0) ? parameters.value(0) : input;
  if (require_defined(value).is_integral()) return Value::string(str_of(value));
  return Value::string(yaml_text(value));
}

Value to_json(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'tojson'", arguments, {"indent"});
  const bool pretty = !parameters.value(0).is_none();
  return Value::string(
      json_text(input, pretty ? std::optional<int64_t>(parameters.integer(0)) : std::nullopt));
}

}  // namespace

const FilterTable& conversion_filters() {
  static const FilterTable filters = {
      {"default", use_default}, {"d", use_default}, {"toyaml", to_yaml}, {"tojson", to_json}};
  return filters;
}

}  // namespace forge::templating
