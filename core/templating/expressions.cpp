// Evaluation of expressions.

#include "core/templating/attributes.h"
#include "core/templating/evaluation.h"
#include "core/templating/globals.h"
#include "core/templating/operators.h"
#include "core/templating/python_text.h"

namespace forge::templating {

Value Evaluator::evaluate(const ast::Expression& expression, const Frame& frame) {
  const Place place{frame.usage, expression.position};
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
  if (node.name == "versions" && !frame.scope->find(node.name).is_unset) {
    const auto made = globals_.emplace(node.name, Value()).first;
    if (made->second.is_none()) made->second = make_versions(request_);
    base_.emplace(node.name, made->second);
    return made->second;
  }
  Undefined undefined;
  undefined.what = Undefined::What::variable;
  undefined.name = node.name;
  undefined.message = "'" + node.name + "' is undefined";
  undefined.place = place;
  return Value::undefined(std::move(undefined));
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
  const Place place{frame.usage, expression.position};
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
  return truth(left) == node.is_and ? evaluate(*node.right, frame) : left;
}

Value Evaluator::visit(const ast::Unary& node, const Frame& frame, Place) {
  const Value operand = evaluate(*node.operand, frame);
  switch (node.operation) {
    case ast::Unary::Operator::logical_not: return Value::boolean(!truth(operand));
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
  if (truth(evaluate(*node.test, frame))) return evaluate(*node.value, frame);
  if (node.otherwise) return evaluate(*node.otherwise, frame);
  Undefined undefined;
  undefined.message = "this inline `if` is false and has no `else`";
  undefined.lenient = true;
  undefined.place = place;
  return Value::undefined(std::move(undefined));
}

}  // namespace forge::templating
