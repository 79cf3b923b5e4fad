#include "core/jinja/evaluator.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/python/operators.h"
#include "core/python/repr.h"

namespace forge::jinja {
namespace {

/// Limit of templates within templates (extends, include, import). More is taken for a cycle.
constexpr int max_template_depth = 100;
constexpr int64_t max_iterations = 10'000'000;
constexpr size_t max_contexts = 1'000'000;

Value value_of(const Variable& variable) {
  switch (variable.kind) {
    case Variable::Kind::none: return Value();
    case Variable::Kind::boolean: return Value::boolean(variable.boolean);
    case Variable::Kind::integer: return Value::integer(variable.integer);
    case Variable::Kind::real: return Value::real(variable.real);
    case Variable::Kind::string: return Value::string(variable.string);
    case Variable::Kind::list: break;
  }
  List items;
  for (const Variable& item : variable.items) items.push_back(value_of(item));
  return Value::list(std::move(items));
}

void add_names(const VariableMap& variables, std::vector<std::string>& names) {
  for (const auto& [name, value] : variables) names.push_back(name);
}

/// Every name that a statement in the frame could use.
std::vector<std::string> visible_names(const Frame& frame) {
  std::vector<std::string> names;
  const auto add_scopes = [&](const Scope* scope) {
    for (; scope; scope = scope->outer.get()) add_names(scope->variables, names);
  };
  add_scopes(frame.scope.get());
  for (const Context* context = frame.context.get(); context; context = context->outer.get()) {
    add_names(context->variables, names);
    add_scopes(context->outer_scope.get());
    if (!context->outer && context->base) add_names(*context->base, names);
  }
  return names;
}

std::vector<std::string> names_in(const Value& owner) {
  if (owner.is_object()) return owner.as_object()->attribute_names();
  std::vector<std::string> names;
  if (!owner.is_dict()) return names;
  for (const auto& [key, value] : owner.as_dict().entries()) {
    if (key.is_string()) names.push_back(key.as_string());
  }
  return names;
}

}  // namespace

Evaluator::Evaluator(const RenderRequest& request,
                     TemplateCache& cache,
                     RenderedTemplates& templates)
    : request_(request),
      templates_(templates),
      loader_(request.search_path, cache, templates.instances),
      globals_(make_globals(request)) {
  globals_["namespace"] = make_function(
      "namespace", [this](const Arguments& arguments) { return make_namespace(arguments); });
  base_ = globals_;
  for (const auto& [name, variable] : request.variables) base_[name] = value_of(variable);
}

Evaluator::~Evaluator() {
  // In order of creation: destroying a long chain at once would recurse too deeply.
  for (const auto& scope : scopes_) {
    if (const auto alive = scope.lock()) alive->variables.clear();
  }
  for (const auto& ns : namespaces_) {
    if (const auto alive = ns.lock()) alive->clear();
  }
  for (const auto& context : contexts_) {
    if (const auto alive = context.lock()) alive->variables.clear();
  }
}

/// `namespace(mapping, name=value …)`. The end of the render cuts a cycle through it.
Value Evaluator::make_namespace(const Arguments& arguments) {
  charge(cost_of_call);
  auto result = std::make_shared<Namespace>();
  namespaces_.push_back(result);
  Dict initial;
  update_dict(initial, "namespace()", arguments);
  for (const auto& [key, value] : initial.entries()) result->set(str_of(key), value);
  return Value::object(std::move(result));
}

TracedText Evaluator::render() {
  const WorkBudget meter;
  const TemplateUse* use = load_template({request_.template_name}, "", {}, false);
  const ContextPtr context = make_context(use);
  context->base = &base_;
  TracedText output;
  run_template(use, context, output);
  return output;
}

/// The use of a template from a place; uses from the same place are one.
const TemplateUse* Evaluator::intern_use(const TemplateInstance* instance, Place place) {
  const TemplateUse*& use = use_of_[{instance, place.use, place.position}];
  if (!use) {
    auto via = place.use ? std::make_shared<const SourceSpan>(span_of(place)) : nullptr;
    use = &templates_.uses.emplace_back(TemplateUse{instance, std::move(via)});
  }
  return use;
}

/// The first of the named templates that exists, or null where that is allowed.
const TemplateUse* Evaluator::load_template(const std::vector<std::string>& names,
                                            const char* relation,
                                            Place place,
                                            bool may_be_missing) {
  const auto via = place.use ? std::make_shared<const SourceSpan>(span_of(place)) : nullptr;
  for (const std::string& name : names) {
    const TemplateInstance* instance = loader_.find(name, via);
    if (!instance) continue;
    const auto same_source = [&](const LoadedTemplate& loaded) {
      return loaded.source == instance->source();
    };
    if (std::none_of(loaded_.begin(), loaded_.end(), same_source)) {
      const std::string loaded_by = place.use ? place.use->instance->name() : "";
      loaded_.push_back({name, instance->source(), loaded_by, relation});
    }
    return intern_use(instance, place);
  }
  if (may_be_missing) return nullptr;
  loader_.fail_missing(names, span_of(place));
}

std::vector<std::string> Evaluator::template_names(const Value& value,
                                                   bool many,
                                                   Place place) const {
  if (require_defined(value).is_string()) return {value.as_string()};
  if (!many || !value.is_sequence()) {
    fail("a template's name must be a string, not '" + type_name(value) + "'", place);
  }
  std::vector<std::string> names;
  for (const Value& item : value.items()) names.push_back(template_names(item, false, place)[0]);
  return names;
}

/// Runs the top level of a template, then that of the one it extends, and so on.
void Evaluator::run_template(const TemplateUse* use,
                             const ContextPtr& context,
                             TracedText& output) {
  const int depth = template_depth_;
  while (use) {
    charge(cost_of_call);
    if (++template_depth_ > max_template_depth) fail_nesting(use);
    TopLevelState root;
    Frame frame;
    frame.use = use;
    frame.context = context;
    frame.scope = std::make_shared<Scope>();
    frame.scope->unassigned = &use->instance->tree().unassigned;
    frame.output = &output;
    frame.root = &root;
    frame.top_level = true;
    if (use->instance->tree().uses_self) {
      frame.scope->variables["self"] =
          Value::object(std::make_shared<TemplateReference>(*this, context));
    }
    run(use->instance->tree().body, frame);
    use = root.parent;
  }
  template_depth_ = depth;
}

ContextPtr Evaluator::make_context(const TemplateUse* use) {
  auto context = std::make_shared<Context>();
  context->base = &globals_;
  for (const auto& [name, block] : use->instance->tree().blocks) {
    context->blocks[name].push_back({block.get(), use});
  }
  return keep(std::move(context));
}

/// Lets the end of the render break a cycle through the context.
ContextPtr Evaluator::keep(ContextPtr context) {
  if (contexts_.size() >= max_contexts)
    throw OperationError("more than a million includes in one render");
  contexts_.push_back(context);
  return context;
}

/// A context of its own that sees all that the frame sees, and has its blocks.
ContextPtr Evaluator::nested_context(const Frame& frame) {
  auto context = std::make_shared<Context>();
  context->outer = frame.context;
  context->outer_scope = frame.scope;
  context->blocks = frame.context->blocks;
  return keep(std::move(context));
}

/// As nested_context, but with the variables as they are now.
ContextPtr Evaluator::snapshot_context(const Frame& frame) {
  const ContextPtr nested = nested_context(frame);
  auto variables = std::make_shared<Scope>();
  for (const std::string& name : visible_names(frame)) {
    const Value* value = nested->find(name);
    if (value) variables->variables[name] = *value;
  }
  nested->outer = nullptr;
  nested->outer_scope = variables;
  scopes_.push_back(variables);
  return nested;
}

std::shared_ptr<Module> Evaluator::import_module(const ast::Expression& name,
                                                 bool with_context,
                                                 const Frame& frame,
                                                 Place place) {
  const std::vector<std::string> names = template_names(evaluate(name, frame), false, place);
  const TemplateUse* use = load_template(names, "import", place, false);
  if (!with_context) return shared_module(use);
  const ContextPtr context = snapshot_context(frame);
  context->blocks = make_context(use)->blocks;
  return make_module(use, context);
}

std::shared_ptr<Module> Evaluator::make_module(const TemplateUse* use, const ContextPtr& context) {
  TracedText text;
  run_template(use, context, text);
  VariableMap exported;
  for (const std::string& name : context->exported) exported[name] = context->variables[name];
  return std::make_shared<Module>(use->instance->name(), std::move(exported), std::move(text));
}

/// A template imported without context runs once; all who import it share the result.
std::shared_ptr<Module> Evaluator::shared_module(const TemplateUse* use) {
  const auto found = modules_.find(use->instance);
  if (found != modules_.end()) return found->second;
  std::shared_ptr<Module> module = make_module(use, make_context(use));
  modules_[use->instance] = module;
  return module;
}

void Evaluator::fail(const std::string& message, Place place, std::string hint) const {
  throw Error(message, span_of(place), std::move(hint));
}

void Evaluator::fail_undefined(const Value& value, const Frame& frame, Place place) const {
  const Undefined& undefined = value.as_undefined();
  std::string hint;
  if (undefined.what == Undefined::What::variable) {
    hint = did_you_mean(undefined.name, visible_names(frame));
    if (hint.empty()) hint = "give it a value, or a default: " + undefined.name + " | default(…)";
  } else if (undefined.what == Undefined::What::attribute) {
    hint = did_you_mean(undefined.name, names_in(undefined.owner));
  }
  fail(undefined.message, undefined.place.use ? undefined.place : place, std::move(hint));
}

void Evaluator::count_iteration(Place place) {
  charge(cost_of_step);
  if (++iterations_ > max_iterations)
    fail("the loops of this template run more than 10 million times", place);
}

/// Refuses templates that lead to themselves, at the last step of the cycle.
void Evaluator::fail_nesting(const TemplateUse* use) const {
  const SourceSpan* const last_step = use->via.get();
  std::vector<const SourceSpan*> steps;
  bool closed = false;
  for (const SourceSpan* step = last_step; step && !closed; step = step->via.get()) {
    steps.push_back(step);
    closed = step->source == use->instance->source();
  }
  if (!closed) {
    throw Error("templates are nested more than " + std::to_string(max_template_depth) + " deep",
                last_step ? *last_step : SourceSpan{});
  }
  std::string message = "template cycle: '" + use->instance->name() + "'";
  std::shared_ptr<const SourceSpan> via;  // the chain of one turn of the cycle, not of all turns
  for (size_t i = steps.size(); i-- > 0;) {
    const std::string target = i > 0 ? name_of(*steps[i - 1]->source) : use->instance->name();
    message += " uses '" + target + "'";
    SourceSpan step = *steps[i];
    step.via = std::move(via);
    via = std::make_shared<const SourceSpan>(std::move(step));
  }
  throw Error(message, *via);
}

/// The name under which a template was requested.
std::string Evaluator::name_of(const SourceText& source) const {
  for (const LoadedTemplate& loaded : loaded_) {
    if (loaded.source.get() == &source) return loaded.name;
  }
  return source.name;
}

}  // namespace forge::jinja
