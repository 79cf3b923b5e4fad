#include "core/jinja/builtins.h"

#include <functional>
#include <map>

#include "core/base/text.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/unicode.h"

namespace forge::jinja {
namespace {

using TestTable = std::map<std::string, TestFunction>;

void refuse_arguments(const Arguments& arguments) { Parameters("this test", arguments, {}); }

Value argument(const Arguments& arguments) {
  return Parameters("this test", arguments, {"value"}, 1).value(0);
}

/// A test of the value's kind alone; an undefined value is no error.
template <auto matches>
bool of_kind(Evaluator&, const Value& input, const Arguments& arguments) {
  refuse_arguments(arguments);
  return std::invoke(matches, input);
}

template <Comparison comparison>
bool compared(Evaluator&, const Value& input, const Arguments& arguments) {
  return compare(comparison, input, argument(arguments));
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_true(const Value& value) { return value.is_boolean() && value.as_boolean(); }
bool is_false(const Value& value) { return value.is_boolean() && !value.as_boolean(); }
bool is_integer(const Value& value) { return value.kind() == Value::Kind::integer; }
bool is_float(const Value& value) { return value.kind() == Value::Kind::real; }
bool is_escaped(const Value&) { return false; }
bool is_callable(const Value& value) {
  return value.is_undefined() || (value.is_object() && value.as_object()->callable());
}
bool can_be_iterated(const Value& value) { return is_iterable(require_defined(value)); }
bool has_length_and_items(const Value& value) {
  if (value.is_object()) return value.object_as<Range>() || value.object_as<Record>();
  return value.is_string() || value.is_sequence() || value.is_dict();
}

template <bool upper>
bool has_case(Evaluator&, const Value& input, const Arguments& arguments) {
  refuse_arguments(arguments);
  return is_of_case(str_of(input), upper);
}

template <int remainder>
bool has_parity(Evaluator&, const Value& input, const Arguments& arguments) {
  refuse_arguments(arguments);
  return equals(apply(BinaryOperator::modulo, input, Value::integer(2)), Value::integer(remainder));
}

bool is_divisible(Evaluator&, const Value& input, const Arguments& arguments) {
  return equals(apply(BinaryOperator::modulo, input, argument(arguments)), Value::integer(0));
}

bool is_same(Evaluator&, const Value& input, const Arguments& arguments) {
  const Value other = argument(arguments);
  return input.same_as(other) ||
         (input.is_string() && other.is_string() && input.as_string() == other.as_string());
}

bool is_in(Evaluator&, const Value& input, const Arguments& arguments) {
  return contains(argument(arguments), input);
}

bool is_filter(Evaluator&, const Value& input, const Arguments& arguments) {
  refuse_arguments(arguments);
  return require_defined(input).is_string() && find_filter(input.as_string());
}

bool is_test(Evaluator&, const Value& input, const Arguments& arguments) {
  refuse_arguments(arguments);
  return require_defined(input).is_string() && find_test(input.as_string());
}

const TestTable& tests() {
  static const TestTable table = {
      {"defined", of_kind<is_defined>},
      {"undefined", of_kind<&Value::is_undefined>},
      {"none", of_kind<&Value::is_none>},
      {"boolean", of_kind<&Value::is_boolean>},
      {"true", of_kind<is_true>},
      {"false", of_kind<is_false>},
      {"integer", of_kind<is_integer>},
      {"float", of_kind<is_float>},
      {"number", of_kind<&Value::is_number>},
      {"string", of_kind<&Value::is_string>},
      {"mapping", of_kind<&Value::is_dict>},
      {"escaped", of_kind<is_escaped>},
      {"callable", of_kind<is_callable>},
      {"iterable", of_kind<can_be_iterated>},
      {"sequence", of_kind<has_length_and_items>},
      {"lower", has_case<false>},
      {"upper", has_case<true>},
      {"odd", has_parity<1>},
      {"even", has_parity<0>},
      {"divisibleby", is_divisible},
      {"sameas", is_same},
      {"in", is_in},
      {"filter", is_filter},
      {"test", is_test},
      {"eq", compared<Comparison::equal>},
      {"==", compared<Comparison::equal>},
      {"equalto", compared<Comparison::equal>},
      {"ne", compared<Comparison::not_equal>},
      {"!=", compared<Comparison::not_equal>},
      {"lt", compared<Comparison::less>},
      {"<", compared<Comparison::less>},
      {"lessthan", compared<Comparison::less>},
      {"le", compared<Comparison::less_equal>},
      {"<=", compared<Comparison::less_equal>},
      {"gt", compared<Comparison::greater>},
      {">", compared<Comparison::greater>},
      {"greaterthan", compared<Comparison::greater>},
      {"ge", compared<Comparison::greater_equal>},
      {">=", compared<Comparison::greater_equal>},
  };
  return table;
}

}  // namespace

TestFunction find_test(const std::string& name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

std::vector<std::string> test_names() { return texts_of(tests(), &TestTable::value_type::first); }

}  // namespace forge::jinja
