// Evaluation of expressions.

#include <algorithm>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/jinja/evaluator.h"
#include "core/python/attributes.h"
#include "core/python/repr.h"

namespace forge::jinja {

Value Evaluator::evaluate(const ast::Expression& expression, const Frame& frame) {
  const Place place{frame.use, expression.position};
  const Level level(*this, place);
  return guarded(frame, place, [&] {
    return std::visit([&](const auto& node) { return visit(node, frame, place); }, expression.node);
  });
}

Value Evaluator::evaluate_optional(const ast::ExpressionPtr& expression, const Frame& frame) {
  return expression ? evaluate(*expression, frame) : Value();
}

List Evaluator::evaluate_all(const std::vector<ast::ExpressionPtr>& expressions,
                             const Frame& frame) {
  List values;
  values.reserve(expressions.size());
  for (const ast::ExpressionPtr& expression : expressions)
    values.push_back(evaluate(*expression, frame));
  return values;
}

Value Evaluator::visit(const ast::Constant& node, const Frame&, Place) { return node.value; }

Value Evaluator::visit(const ast::Name& node, const Frame& frame, Place place) {
  if (const Value* value = frame.find(node.name)) return *value;
  if (node.name == "versions" && !frame.scope->find(node.name).is_unassigned) {
    const auto made = globals_.emplace(node.name, Value()).first;
    if (made->second.is_none()) made->second = make_versions(request_);
    base_.emplace(node.name, made->second);
    return made->second;
  }
  return Value::undefined(
      {Undefined::What::variable, node.name, "'" + node.name + "' is undefined", {}, place});
}

Value Evaluator::visit(const ast::ListLiteral& node, const Frame& frame, Place) {
  return Value::list(evaluate_all(node.items, frame));
}

Value Evaluator::visit(const ast::TupleLiteral& node, const Frame& frame, Place) {
  return Value::tuple(evaluate_all(node.items, frame));
}

Value Evaluator::visit(const ast::DictLiteral& node, const Frame& frame, Place) {
  Dict dict;
  for (const auto& [key, value] : node.entries) {
    const Value evaluated_key = evaluate(*key, frame);
    dict.set(evaluated_key, evaluate(*value, frame));
  }
  return Value::dict(std::move(dict));
}

Value Evaluator::visit(const ast::Attribute& node, const Frame& frame, Place place) {
  return attribute_of(evaluate(*node.object, frame), node.name, place);
}

Value Evaluator::visit(const ast::Subscript& node, const Frame& frame, Place place) {
  const Value object = evaluate(*node.object, frame);
  return subscript_of(object, evaluate(*node.key, frame), place);
}

Value Evaluator::visit(const ast::SliceOf& node, const Frame& frame, Place) {
  const Value object = evaluate(*node.object, frame);
  const Value begin = evaluate_optional(node.begin, frame);
  const Value end = evaluate_optional(node.end, frame);
  return slice(object, begin, end, evaluate_optional(node.step, frame));
}

Arguments Evaluator::evaluate_arguments(const ast::CallArguments& node, const Frame& frame) {
  Arguments arguments;
  arguments.positional = evaluate_all(node.positional, frame);
  for (const auto& [name, value] : node.named)
    arguments.named.emplace_back(name, evaluate(*value, frame));
  if (node.more_positional) {
    const List more = iterate(evaluate(*node.more_positional, frame));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (node.more_named) {
    const Value more = evaluate(*node.more_named, frame);
    if (!require_defined(more).is_dict())
      throw OperationError("the argument after ** must be a mapping");
    for (const auto& [key, value] : more.as_dict().entries()) {
      if (!key.is_string()) throw OperationError("keywords must be strings");
      if (arguments.find(key.as_string())) {
        throw OperationError("the argument '" + key.as_string() + "' is given twice");
      }
      arguments.named.emplace_back(key.as_string(), value);
    }
  }
  return arguments;
}

Value Evaluator::visit(const ast::Call& node, const Frame& frame, Place place) {
  return call_expression(node, frame, place, nullptr);
}

Value Evaluator::call_expression(const ast::Call& node,
                                 const Frame& frame,
                                 Place place,
                                 const Value* caller) {
  const Value callee = evaluate(*node.callee, frame);
  Arguments arguments = evaluate_arguments(node.arguments, frame);
  if (caller) arguments.named.emplace_back("caller", *caller);
  call_place_ = place;
  return call(callee, arguments);
}

Value Evaluator::visit(const ast::Filter& node, const Frame& frame, Place place) {
  const Value input = evaluate(*node.input, frame);
  const Arguments arguments = evaluate_arguments(node.arguments, frame);
  call_place_ = place;
  return apply_filter(node.name, input, arguments);
}

/// Applies the filters of a block, whose innermost has no input of its own.
Value Evaluator::apply_filters(const ast::Expression& expression, Value input, const Frame& frame) {
  const Place place{frame.use, expression.position};
  const auto& filter = std::get<ast::Filter>(expression.node);
  if (filter.input) input = apply_filters(*filter.input, std::move(input), frame);
  return guarded(frame, place, [&] {
    const Arguments arguments = evaluate_arguments(filter.arguments, frame);
    call_place_ = place;
    return apply_filter(filter.name, input, arguments);
  });
}

Value Evaluator::visit(const ast::Test& node, const Frame& frame, Place) {
  const Value input = evaluate(*node.input, frame);
  return Value::boolean(apply_test(node.name, input, evaluate_arguments(node.arguments, frame)));
}

Value Evaluator::visit(const ast::Binary& node, const Frame& frame, Place) {
  const Value left = evaluate(*node.left, frame);
  return apply(node.operation, left, evaluate(*node.right, frame));
}

Value Evaluator::visit(const ast::Logical& node, const Frame& frame, Place) {
  Value left = evaluate(*node.left, frame);
  return is_truthy(left) == node.is_and ? evaluate(*node.right, frame) : left;
}

Value Evaluator::visit(const ast::Unary& node, const Frame& frame, Place) {
  const Value operand = evaluate(*node.operand, frame);
  switch (node.operation) {
    case ast::Unary::Operator::logical_not: return Value::boolean(!is_truthy(operand));
    case ast::Unary::Operator::minus: return negate(operand);
    case ast::Unary::Operator::plus: return unary_plus(operand);
  }
  return Value();
}

Value Evaluator::visit(const ast::Concatenation& node, const Frame& frame, Place place) {
  TracedText text;
  for (const ast::ExpressionPtr& part : node.parts) {
    const Value value = evaluate(*part, frame);
    if (value.is_string()) {
      text.append(value.traced(), place);
    } else {
      text.append_printed(str_of(value), place);
    }
    require_text_size(text.text().size());
  }
  return Value::string(std::move(text));
}

Value Evaluator::visit(const ast::ComparisonChain& node, const Frame& frame, Place) {
  Value left = evaluate(*node.first, frame);
  for (const auto& [comparison, expression] : node.rest) {
    Value right = evaluate(*expression, frame);
    if (!compare(comparison, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::visit(const ast::Conditional& node, const Frame& frame, Place place) {
  if (is_truthy(evaluate(*node.test, frame))) return evaluate(*node.value, frame);
  if (node.otherwise) return evaluate(*node.otherwise, frame);
  const char* const message = "this inline `if` is false and has no `else`";
  return Value::undefined({Undefined::What::other, "", message, {}, place, true});
}

// Calls of macros, blocks and functions.

namespace {

Value undefined_parameter(const std::string& name, const std::string& message, Place place) {
  return Value::undefined({Undefined::What::other, name, message, {}, place});
}

/// The arguments that no parameter of the macro takes, handed on as `kwargs` and `varargs`, or
/// refused when the macro does not ask for them.
void bind_rest(const ast::Routine& routine, Arguments rest, VariableMap& variables) {
  const std::string macro =
      routine.name.empty() ? "the call block" : "macro '" + routine.name + "'";
  if (routine.uses_named) {
    Dict named;
    for (auto& [name, value] : rest.named) named.set(Value::string(name), std::move(value));
    variables["kwargs"] = Value::dict(std::move(named));
  } else if (!rest.named.empty()) {
    const std::string& name = rest.named[0].first;
    throw OperationError(macro + " has no parameter '" + name + "'",
                         did_you_mean(name, routine.parameters));
  }
  if (routine.uses_positional) {
    variables["varargs"] = Value::tuple(std::move(rest.positional));
  } else if (!rest.positional.empty()) {
    throw OperationError(macro + " takes at most " + std::to_string(routine.parameters.size()) +
                         " arguments");
  }
}

/// Filters and tests may walk over all of their input.
void charge_input(const Value& input) {
  if (input.is_string()) charge_walk(input.as_string().size());
  if (input.is_sequence()) charge_walk(16 * input.items().size());
  if (input.is_dict()) charge_walk(16 * input.as_dict().size());
}

}  // namespace

Value Evaluator::make_macro(const ast::Routine& routine, const Frame& frame) {
  charge(cost_of_call);
  scopes_.push_back(frame.scope);
  Frame definition = frame;
  definition.output = nullptr;
  definition.root = nullptr;
  definition.top_level = false;
  return Value::object(std::make_shared<Macro>(*this, routine, definition));
}

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  if (callee.is_object() && callee.as_object()->callable())
    return callee.as_object()->call(arguments);
  throw OperationError("'" + type_name(callee) + "' object is not callable");
}

Value Evaluator::apply_filter(const std::string& name,
                              const Value& input,
                              const Arguments& arguments) {
  const FilterFunction filter = find_filter(name);
  if (!filter)
    throw OperationError("there is no filter '" + name + "'", did_you_mean(name, filter_names()));
  charge_input(input);
  return filter(*this, input, arguments);
}

bool Evaluator::apply_test(const std::string& name,
                           const Value& input,
                           const Arguments& arguments) {
  const TestFunction test = find_test(name);
  if (!test)
    throw OperationError("there is no test '" + name + "'", did_you_mean(name, test_names()));
  charge_input(input);
  return test(*this, input, arguments);
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
  charge(cost_of_call);
  const ast::Routine& routine = macro.routine();
  const Place call_place = call_place_;
  TracedText text;
  Frame frame = macro.frame().inner(routine.unassigned, text);
  // Origins in the macro's text lead through the place of its call.
  frame.use = intern_use(macro.frame().use->instance, call_place);
  VariableMap& variables = frame.scope->variables;
  Arguments rest = arguments;
  /// Moves a named argument to the macro's variable of the name, if it was given.
  const auto take_named = [&](const std::string& name) {
    const auto is_it = [&](const auto& entry) { return entry.first == name; };
    const auto found = std::find_if(rest.named.begin(), rest.named.end(), is_it);
    if (found == rest.named.end()) return false;
    variables[name] = std::move(found->second);
    rest.named.erase(found);
    return true;
  };
  const size_t given = std::min(rest.positional.size(), routine.parameters.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < routine.parameters.size(); ++i) {
    const std::string& name = routine.parameters[i];
    if (i < given) {
      variables[name] = rest.positional[i];
    } else if (!take_named(name)) {
      missing.push_back(i);
      // A default that names a later parameter finds it undefined, not a variable around the macro.
      variables[name] = undefined_parameter(name, "'" + name + "' is undefined", call_place);
    }
  }
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(given));
  if (routine.uses_caller && !take_named("caller")) {
    const std::string message = "no caller is defined: the macro was not called by {% call %}";
    variables["caller"] = undefined_parameter("caller", message, call_place);
  }
  bind_rest(routine, std::move(rest), variables);
  const size_t without_default = routine.parameters.size() - routine.defaults.size();
  for (const size_t i : missing) {
    const std::string& name = routine.parameters[i];
    variables[name] =
        i < without_default
            ? undefined_parameter(name, "parameter '" + name + "' was not provided", call_place)
            : evaluate(*routine.defaults[i - without_default], frame);
  }
  run(routine.body, frame);
  return Value::string(std::move(text));
}

TracedText Evaluator::render_block(const ContextPtr& context,
                                   const std::string& name,
                                   size_t index) {
  TracedText text;
  run_block(context, name, index, text);
  return text;
}

void Evaluator::run_block(const ContextPtr& context,
                          const std::string& name,
                          size_t index,
                          TracedText& output) {
  charge(cost_of_call);
  const BlockDefinition definition = context->blocks.at(name).at(index);
  Frame frame;
  frame.use = definition.use;
  frame.context = context;
  frame.scope = std::make_shared<Scope>();
  frame.scope->unassigned = &definition.block->unassigned;
  frame.output = &output;
  if (definition.block->uses_super) {
    frame.scope->variables["super"] = block_reference(*this, context, name, index + 1);
  }
  if (definition.block->uses_self) {
    frame.scope->variables["self"] =
        Value::object(std::make_shared<TemplateReference>(*this, context));
  }
  run(definition.block->body, frame);
}

}  // namespace forge::jinja
