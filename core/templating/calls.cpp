// Calls of macros, blocks and functions.

#include <algorithm>

#include "core/base/text.h"
#include "core/templating/evaluation.h"
#include "core/templating/filters.h"
#include "core/templating/operators.h"
#include "core/templating/template_objects.h"
#include "core/templating/template_tests.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

Value undefined_parameter(const std::string& name, const std::string& message, Place place) {
  Undefined undefined;
  undefined.name = name;
  undefined.message = message;
  undefined.place = place;
  return Value::undefined(std::move(undefined));
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
  charge(work_of_call);
  scopes_.push_back(frame.scope);
  Frame definition = frame;
  definition.output = nullptr;
  definition.root = nullptr;
  definition.top_level = false;
  return Value::object(std::make_shared<Macro>(routine, definition));
}

Value Evaluator::call(const Value& callee, const Arguments& arguments) {
  require_defined(callee);
  if (callee.is_object() && callee.as_object()->callable())
    return callee.as_object()->call(*this, arguments);
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
  charge(work_of_call);
  const ast::Routine& routine = macro.routine();
  const Place call_place = call_place_;
  TracedText text;
  Frame frame = macro.frame().inner(routine.unset, text);
  // What a macro writes is reached through its call.
  frame.usage = use(macro.frame().usage->unit, call_place);
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
  charge(work_of_call);
  const BlockDefinition definition = context->blocks.at(name).at(index);
  Frame frame;
  frame.usage = definition.usage;
  frame.context = context;
  frame.scope = std::make_shared<Scope>();
  frame.scope->unset = &definition.block->unset;
  frame.output = &output;
  if (definition.block->uses_super) {
    frame.scope->variables["super"] = block_reference(context, name, index + 1);
  }
  if (definition.block->uses_self) {
    frame.scope->variables["self"] = Value::object(std::make_shared<TemplateReference>(context));
  }
  run(definition.block->body, frame);
}

}  // namespace forge::templating
