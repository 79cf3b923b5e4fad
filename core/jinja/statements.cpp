// Execution of statements.

#include "core/jinja/evaluator.h"
#include "core/python/repr.h"

namespace forge::jinja {

void Evaluator::run(const ast::Body& body, const Frame& frame) {
  for (const ast::Statement& statement : body) run(statement, frame);
}

void Evaluator::run(const ast::Statement& statement, const Frame& frame) {
  const Place place{frame.use, statement.position};
  const Level level(*this, place);
  guarded(frame, place, [&] {
    std::visit([&](const auto& node) { visit(node, frame, place); }, statement.node);
  });
}

void Evaluator::visit(const ast::Literal& node, const Frame& frame, Place place) {
  if (frame.discards_output()) return;
  frame.output->append_literal(node.text, place);
  require_text_size(frame.output->text().size());
}

void Evaluator::visit(const ast::Print& node, const Frame& frame, Place place) {
  if (frame.discards_output()) return;
  print(evaluate(*node.value, frame), frame, place);
}

void Evaluator::print(const Value& value, const Frame& frame, Place place) {
  if (value.is_string()) {
    charge_walk(value.as_string().size());
    frame.output->append(value.traced(), place);
  } else if (const Module* module = value.object_as<Module>()) {
    frame.output->append(module->text(), place);
  } else {
    frame.output->append_printed(str_of(value), place);
  }
  require_text_size(frame.output->text().size());
}

void Evaluator::visit(const ast::If& node, const Frame& frame, Place) {
  for (const auto& [test, body] : node.branches) {
    if (is_truthy(evaluate(*test, frame))) return run(body, frame);
  }
  run(node.otherwise, frame);
}

void Evaluator::visit(const ast::For& node, const Frame& frame, Place place) {
  List items = iterate(evaluate(*node.iterable, frame));
  if (!node.recursive) return run_loop_bodies(node, frame, std::move(items), 0);
  frame.output->append(run_loop(node, frame, std::move(items), 0), place);
}

TracedText Evaluator::run_loop(const ast::For& loop, const Frame& frame, List items, int depth) {
  TracedText text;
  Frame buffered = frame;
  buffered.output = &text;
  run_loop_bodies(loop, buffered, std::move(items), depth);
  return text;
}

void Evaluator::run_loop_bodies(const ast::For& loop, const Frame& frame, List items, int depth) {
  const Place place{frame.use, loop.target.position};
  static const ast::UnassignedNames no_names;
  const auto passes_test = [&](const Value& item) {
    if (!loop.test) return true;
    const Frame test_frame = frame.inner(no_names);
    assign(loop.target, item, test_frame);
    return is_truthy(evaluate(*loop.test, test_frame));
  };
  if (loop.test && loop.uses_loop) {  // `loop` counts only the items that pass
    List passing;
    for (const Value& item : items) {
      if (passes_test(item)) passing.push_back(item);
    }
    items = std::move(passing);
  }
  std::shared_ptr<LoopState> state;
  if (loop.uses_loop) charge_items(2 * items.size());
  if (loop.uses_loop) state = std::make_shared<LoopState>(*this, loop, frame, items, depth);
  bool ran = false;
  for (size_t i = 0; i < items.size(); ++i) {
    count_iteration(place);
    if (!state && !passes_test(items[i])) continue;
    ran = true;
    const Frame pass = frame.inner(loop.body_unassigned);
    if (state) {
      state->set_index(i);
      pass.scope->variables["loop"] = Value::object(state);
    }
    assign(loop.target, items[i], pass);
    run(loop.body, pass);
  }
  if (!ran) run(loop.otherwise, frame.inner(loop.otherwise_unassigned));
}

void Evaluator::assign(const ast::Target& target, const Value& value, const Frame& frame) {
  if (target.is_tuple) {
    const List items = iterate(value);
    if (items.size() != target.parts.size()) {
      throw OperationError("cannot unpack " + std::to_string(items.size()) + " values into " +
                           std::to_string(target.parts.size()) + " names");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], frame);
    return;
  }
  if (target.attribute.empty()) return define(target.name, value, frame, true);
  const Value* owner = frame.find(target.name);
  Namespace* ns = owner ? owner->object_as<Namespace>() : nullptr;
  if (!ns) {
    throw OperationError(
        "cannot set '" + target.name + "." + target.attribute + "': '" + target.name + "' is " +
            (owner ? "no namespace but of type '" + type_name(*owner) + "'" : "undefined"),
        "make it with {% set " + target.name + " = namespace() %}");
  }
  ns->set(target.attribute, value);
}

/// Sets a variable of the frame; at a template's top level also one of the context.
void Evaluator::define(const std::string& name,
                       const Value& value,
                       const Frame& frame,
                       bool exported) {
  frame.scope->variables[name] = value;
  if (!frame.top_level) return;
  frame.context->variables[name] = value;
  if (exported && name[0] != '_') {
    frame.context->exported.insert(name);
  } else {
    frame.context->exported.erase(name);
  }
}

void Evaluator::visit(const ast::Set& node, const Frame& frame, Place) {
  assign(node.target, evaluate(*node.value, frame), frame);
}

void Evaluator::visit(const ast::SetBlock& node, const Frame& frame, Place) {
  TracedText text;
  Frame body = frame.inner(node.unassigned, text);
  body.root = nullptr;  // a set block captures its text even after `extends`
  run(node.body, body);
  Value value = Value::string(std::move(text));
  if (node.filter) value = apply_filters(*node.filter, std::move(value), body);
  assign(node.target, value, frame);
}

void Evaluator::visit(const ast::FilterBlock& node, const Frame& frame, Place place) {
  TracedText text;
  const Frame body = frame.inner(node.unassigned, text);
  run(node.body, body);
  const Value result = apply_filters(*node.filter, Value::string(std::move(text)), body);
  if (!result.is_string()) {
    throw OperationError("the filters of this block give '" + type_name(result) + "', not a text");
  }
  print(result, frame, place);
}

void Evaluator::visit(const ast::With& node, const Frame& frame, Place) {
  const Frame body = frame.inner(node.unassigned);
  for (const auto& [target, value] : node.assignments)
    assign(target, evaluate(*value, frame), body);
  run(node.body, body);
}

void Evaluator::visit(const ast::MacroDefinition& node, const Frame& frame, Place) {
  define(node.routine.name, make_macro(node.routine, frame), frame, true);
}

void Evaluator::visit(const ast::CallBlock& node, const Frame& frame, Place place) {
  const Value caller = make_macro(node.routine, frame);
  const Place call_place{frame.use, node.call->position};
  const auto& call = std::get<ast::Call>(node.call->node);
  print(
      guarded(frame, call_place, [&] { return call_expression(call, frame, call_place, &caller); }),
      frame,
      place);
}

void Evaluator::visit(const ast::BlockUse& node, const Frame& frame, Place) {
  const ast::Block& block = *node.block;
  if (frame.top_level && frame.discards_output()) return;
  const std::vector<BlockDefinition>& definitions = frame.context->blocks[block.name];
  if (block.required && definitions.size() <= 1) {
    throw OperationError("required block '" + block.name + "' is not defined",
                         "define it in a template that extends this one");
  }
  run_block(block.scoped ? nested_context(frame) : frame.context, block.name, 0, *frame.output);
}

void Evaluator::visit(const ast::Extends& node, const Frame& frame, Place place) {
  const Value name = evaluate(*node.parent, frame);
  if (frame.root->parent) throw OperationError("this template already extends another one");
  frame.root->parent = load_template(template_names(name, false, place), "extends", place, false);
  for (const auto& [block_name, block] : frame.root->parent->instance->tree().blocks) {
    frame.context->blocks[block_name].push_back({block.get(), frame.root->parent});
  }
}

void Evaluator::visit(const ast::Include& node, const Frame& frame, Place place) {
  const std::vector<std::string> names = template_names(evaluate(*node.name, frame), true, place);
  const TemplateUse* use = load_template(names, "include", place, node.ignore_missing);
  if (!use) return;
  if (!node.with_context) {
    frame.output->append(shared_module(use)->text(), place);
    return;
  }
  const ContextPtr context = nested_context(frame);
  context->blocks = make_context(use)->blocks;
  run_template(use, context, *frame.output);
}

void Evaluator::visit(const ast::Import& node, const Frame& frame, Place place) {
  const Value module = Value::object(import_module(*node.name, node.with_context, frame, place));
  define(node.target, module, frame, false);
}

void Evaluator::visit(const ast::FromImport& node, const Frame& frame, Place place) {
  const std::shared_ptr<Module> module = import_module(*node.name, node.with_context, frame, place);
  for (const auto& [name, local] : node.names) {
    std::optional<Value> value = module->attribute(name);
    if (!value) {
      value = Value::undefined({Undefined::What::attribute,
                                name,
                                "the imported template does not export '" + name + "'",
                                Value::object(module),
                                place});
    }
    define(local, *value, frame, false);
  }
}

}  // namespace forge::jinja
