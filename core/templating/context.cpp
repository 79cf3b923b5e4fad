#include "core/templating/context.h"

namespace forge::templating {

const Value* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

const Value* Context::find(const std::string& name) const {
  for (const Context* context = this; context; context = context->outer.get()) {
    const auto found = context->variables.find(name);
    if (found != context->variables.end()) return &found->second;
    const Value* seen = context->outer_scope ? context->outer_scope->find(name) : nullptr;
    if (seen) return seen;
    if (context->outer || !context->base) continue;
    const auto global = context->base->find(name);
    return global == context->base->end() ? nullptr : &global->second;
  }
  return nullptr;
}

Frame Frame::inner() const {
  Frame frame = *this;
  frame.scope = std::make_shared<Scope>();
  frame.scope->outer = scope;
  frame.top_level = false;
  return frame;
}

Frame Frame::inner(TracedText& text) const {
  Frame frame = inner();
  frame.output = &text;
  return frame;
}

}  // namespace forge::templating
