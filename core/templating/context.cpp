#include "core/templating/context.h"

#include <algorithm>

namespace forge::templating {

Scope::Lookup Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return {&found->second, false};
    if (!scope->unset) continue;
    if (std::find(scope->unset->begin(), scope->unset->end(), name) != scope->unset->end()) {
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

Frame Frame::inner(const ast::UnsetNames& unset) const {
  Frame frame = *this;
  frame.scope = std::make_shared<Scope>();
  frame.scope->unset = &unset;
  frame.scope->outer = scope;
  frame.top_level = false;
  return frame;
}

Frame Frame::inner(const ast::UnsetNames& unset, TracedText& text) const {
  Frame frame = inner(unset);
  frame.output = &text;
  return frame;
}

const Value* Frame::find(const std::string& name) const {
  const Scope::Lookup local = scope->find(name);
  return local.value || local.is_unset ? local.value : context->find(name);
}

}  // namespace forge::templating
