#include "core/jinja/runtime.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/jinja/evaluator.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"

namespace forge::jinja {

Scope::Lookup Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return {&found->second, false};
    if (!scope->unassigned) continue;
    if (std::find(scope->unassigned->begin(), scope->unassigned->end(), name) !=
        scope->unassigned->end()) {
      return {nullptr, true};
    }
  }
  return {};
}

const Value* Context::find(const std::string& name) const {
  for (const Context* context = this; context; context = context->outer.get()) {
    const auto found = context->variables.find(name);
    if (found != context->variables.end()) return &found->second;
    const Value* seen = context->outer_scope ? context->outer_scope->find(name).value : nullptr;
    if (seen) return seen;
    if (context->outer || !context->base) continue;
    const auto global = context->base->find(name);
    return global == context->base->end() ? nullptr : &global->second;
  }
  return nullptr;
}

Frame Frame::inner(const ast::UnassignedNames& unassigned) const {
  Frame frame = *this;
  frame.scope = std::make_shared<Scope>();
  frame.scope->unassigned = &unassigned;
  frame.scope->outer = scope;
  frame.top_level = false;
  return frame;
}

Frame Frame::inner(const ast::UnassignedNames& unassigned, TracedText& text) const {
  Frame frame = inner(unassigned);
  frame.output = &text;
  return frame;
}

const Value* Frame::find(const std::string& name) const {
  const Scope::Lookup local = scope->find(name);
  return local.value || local.is_unassigned ? local.value : context->find(name);
}

namespace {

Value integer(size_t number) { return Value::integer(static_cast<int64_t>(number)); }

}  // namespace

std::string Namespace::repr() const { return "<Namespace " + repr_of_dict(attributes_) + ">"; }

std::optional<Value> Namespace::attribute(const std::string& name) {
  const Value* value = attributes_.find(Value::string(name));
  return value ? std::optional<Value>(*value) : std::nullopt;
}

std::vector<std::string> Namespace::attribute_names() const {
  return texts_of(attributes_.entries(), [](const auto& entry) { return entry.first.as_string(); });
}

Value make_group(Value grouper, Value list) {
  Record::Fields fields = {{"grouper", std::move(grouper)}, {"list", std::move(list)}};
  return Value::object(std::make_shared<Record>("", std::move(fields)));
}

std::optional<Value> Cycler::attribute(const std::string& name) {
  const Value current = (*items_)[*position_];
  if (name == "current") return current;
  if (name == "next") {
    return make_function("next", [items = items_, position = position_](const Arguments&) {
      const Value value = (*items)[*position];
      *position = (*position + 1) % items->size();
      return value;
    });
  }
  if (name == "reset") {
    return make_function("reset", [position = position_](const Arguments&) {
      *position = 0;
      return Value();
    });
  }
  return std::nullopt;
}

Value Joiner::call(const Arguments&) {
  if (std::exchange(used_, true)) return separator_;
  return Value::string("");
}

std::string Macro::repr() const {
  return "<Macro " + (routine_.name.empty() ? "anonymous" : repr_of_string(routine_.name)) + ">";
}

Value Macro::call(const Arguments& arguments) { return evaluator_.call_macro(*this, arguments); }

std::optional<Value> Macro::attribute(const std::string& name) {
  if (name == "name") return Value::string(routine_.name);
  if (name == "caller") return Value::boolean(routine_.uses_caller);
  if (name == "catch_kwargs") return Value::boolean(routine_.uses_named);
  if (name == "catch_varargs") return Value::boolean(routine_.uses_positional);
  if (name != "arguments") return std::nullopt;
  List names;
  for (const std::string& parameter : routine_.parameters)
    names.push_back(Value::string(parameter));
  return Value::tuple(std::move(names));
}

Value BlockReference::call(const Arguments& arguments) {
  Parameters("a block", arguments, {});
  return Value::string(evaluator_.render_block(context_, name_, index_));
}

std::optional<Value> BlockReference::attribute(const std::string& name) {
  if (name == "super") return block_reference(evaluator_, context_, name_, index_ + 1);
  return std::nullopt;
}

Value block_reference(Evaluator& evaluator,
                      const ContextPtr& context,
                      const std::string& name,
                      size_t index) {
  const auto found = context->blocks.find(name);
  if (found == context->blocks.end() || index >= found->second.size()) {
    return Value::undefined_because("there is no parent block '" + name + "'");
  }
  return Value::object(std::make_shared<BlockReference>(evaluator, context, name, index));
}

std::optional<Value> TemplateReference::item(const Value& key) {
  if (!key.is_string() || !context_->blocks.count(key.as_string())) return std::nullopt;
  return block_reference(evaluator_, context_, key.as_string(), 0);
}

std::optional<Value> Module::attribute(const std::string& name) {
  const auto found = exported_.find(name);
  return found == exported_.end() ? std::nullopt : std::optional<Value>(found->second);
}

std::vector<std::string> Module::attribute_names() const {
  return texts_of(exported_, &VariableMap::value_type::first);
}

std::string LoopState::repr() const {
  return "<LoopContext " + std::to_string(index_ + 1) + "/" + std::to_string(items_.size()) + ">";
}

std::vector<std::string> LoopState::attribute_names() const {
  return {"index",
          "index0",
          "revindex",
          "revindex0",
          "first",
          "last",
          "length",
          "depth",
          "depth0",
          "previtem",
          "nextitem",
          "cycle",
          "changed"};
}

std::optional<Value> LoopState::attribute(const std::string& name) {
  const size_t size = items_.size();
  if (name == "index") return integer(index_ + 1);
  if (name == "index0") return integer(index_);
  if (name == "revindex") return integer(size - index_);
  if (name == "revindex0") return integer(size - index_ - 1);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(index_ + 1 == size);
  if (name == "length") return integer(size);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem")
    return index_ > 0 ? items_[index_ - 1] : Value::undefined_because("there is no previous item");
  if (name == "nextitem")
    return index_ + 1 < size ? items_[index_ + 1]
                             : Value::undefined_because("there is no next item");
  if (name == "cycle") {
    return make_function("cycle", [self = shared_from_this()](const Arguments& arguments) {
      return self->cycle(arguments);
    });
  }
  if (name == "changed") {
    return make_function("changed", [self = shared_from_this()](const Arguments& arguments) {
      return self->changed(arguments);
    });
  }
  return std::nullopt;
}

Value LoopState::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) throw OperationError("no items for cycling given");
  return arguments.positional[index_ % arguments.positional.size()];
}

Value LoopState::changed(const Arguments& arguments) {
  const List& values = arguments.positional;
  const bool same = last_changed_ && last_changed_->size() == values.size() &&
                    std::equal(values.begin(), values.end(), last_changed_->begin(), equals);
  last_changed_ = values;
  return Value::boolean(!same);
}

Value LoopState::call(const Arguments& arguments) {
  if (!loop_.recursive) throw OperationError("the loop must be marked 'recursive' to be called");
  const List items = python::iterate(Parameters("loop()", arguments, {"iterable"}, 1).value(0));
  return Value::string(evaluator_.run_loop(loop_, frame_, items, depth_ + 1));
}

}  // namespace forge::jinja
