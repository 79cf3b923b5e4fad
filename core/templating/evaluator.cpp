#include "core/templating/evaluator.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/templating/evaluation.h"
#include "core/templating/globals.h"
#include "core/templating/objects.h"
#include "core/templating/operators.h"
#include "core/templating/template_objects.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

/// Templates inside templates (extends, include, import): more is a cycle, or as good as one.
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

Evaluator::Evaluator(const RenderRequest& request, TemplateCache& cache, RenderedUnits& units)
    : request_(request),
      units_(units),
      loader_(request.search_path, cache, units.units),
      globals_(make_globals(request)),
      base_(globals_) {
  for (const auto& [name, variable] : request.variables) base_[name] = value_of(variable);
}

Evaluator::~Evaluator() {
  // In order of creation, so that a long chain of them never falls all at once.
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

TracedText Evaluator::render() {
  const WorkMeter meter;
  const Usage* usage = use_template({request_.template_name}, "", {}, false);
  const ContextPtr context = make_context(usage);
  context->base = &base_;
  TracedText output;
  run_template(usage, context, output);
  return output;
}

/// The use of a template from a place; uses from the same place are one.
const Usage* Evaluator::use(const Unit* unit, Place place) {
  const Usage*& usage = usage_of_[{unit, place.usage, place.position}];
  if (!usage) {
    auto via = place.usage ? std::make_shared<const SourceSpan>(span_of(place)) : nullptr;
    usage = &units_.usages.emplace_back(Usage{unit, std::move(via)});
  }
  return usage;
}

/// The first of the named templates that exists, or null where that is allowed.
const Usage* Evaluator::use_template(const std::vector<std::string>& names,
                                     const char* relation,
                                     Place place,
                                     bool may_be_missing) {
  const auto via = place.usage ? std::make_shared<const SourceSpan>(span_of(place)) : nullptr;
  for (const std::string& name : names) {
    const Unit* unit = loader_.find(name, via);
    if (!unit) continue;
    const auto same_source = [&](const LoadedTemplate& loaded) {
      return loaded.source == unit->source();
    };
    if (std::none_of(loaded_.begin(), loaded_.end(), same_source)) {
      const std::string loaded_by = place.usage ? place.usage->unit->name() : "";
      loaded_.push_back({name, unit->source(), loaded_by, relation});
    }
    return use(unit, place);
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
  for (const Value& item : value.items()) {
    const std::vector<std::string> one = template_names(item, false, place);
    names.push_back(one[0]);
  }
  return names;
}

/// Runs the top level of a template, then that of the one it extends, and so on.
void Evaluator::run_template(const Usage* usage, const ContextPtr& context, TracedText& output) {
  const int depth = template_depth_;
  while (usage) {
    charge(work_of_call);
    if (++template_depth_ > max_template_depth) fail_nesting(usage);
    RootState root;
    Frame frame;
    frame.usage = usage;
    frame.context = context;
    frame.scope = std::make_shared<Scope>();
    frame.scope->unset = &usage->unit->tree().unset;
    frame.output = &output;
    frame.root = &root;
    frame.top_level = true;
    if (usage->unit->tree().uses_self) {
      frame.scope->variables["self"] = Value::object(std::make_shared<TemplateReference>(context));
    }
    run(usage->unit->tree().body, frame);
    usage = root.parent;
  }
  template_depth_ = depth;
}

ContextPtr Evaluator::make_context(const Usage* usage) {
  auto context = std::make_shared<Context>();
  context->base = &globals_;
  for (const auto& [name, block] : usage->unit->tree().blocks) {
    context->blocks[name].push_back({block.get(), usage});
  }
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
  if (contexts_.size() >= max_contexts)
    throw OperationError("more than a million includes in one render");
  contexts_.push_back(context);
  return context;
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
  const Usage* usage = use_template(names, "import", place, false);
  if (!with_context) return default_module(usage);
  const ContextPtr context = snapshot_context(frame);
  context->blocks = make_context(usage)->blocks;
  return make_module(usage, context);
}

std::shared_ptr<Module> Evaluator::make_module(const Usage* usage, const ContextPtr& context) {
  TracedText text;
  run_template(usage, context, text);
  VariableMap exported;
  for (const std::string& name : context->exported) exported[name] = context->variables[name];
  auto module = std::make_shared<Module>(usage->unit->name(), std::move(exported), std::move(text));
  return module;
}

/// A template imported without context runs once; all who import it share the result.
std::shared_ptr<Module> Evaluator::default_module(const Usage* usage) {
  const auto found = modules_.find(usage->unit);
  if (found != modules_.end()) return found->second;
  std::shared_ptr<Module> module = make_module(usage, make_context(usage));
  modules_[usage->unit] = module;
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
  fail(undefined.message, undefined.place.usage ? undefined.place : place, std::move(hint));
}

void Evaluator::count_iteration(Place place) {
  charge(work_of_step);
  if (++iterations_ > max_iterations)
    fail("the loops of this template run more than 10 million times", place);
}

/// Refuses templates that lead to themselves, at the last step of the cycle.
void Evaluator::fail_nesting(const Usage* usage) const {
  const SourceSpan* const last_step = usage->via.get();
  std::vector<const SourceSpan*> steps;
  bool closed = false;
  for (const SourceSpan* step = last_step; step && !closed; step = step->via.get()) {
    steps.push_back(step);
    closed = step->source == usage->unit->source();
  }
  if (!closed) {
    throw Error("templates are nested more than " + std::to_string(max_template_depth) + " deep",
                last_step ? *last_step : SourceSpan{});
  }
  std::string message = "template cycle: '" + usage->unit->name() + "'";
  std::shared_ptr<const SourceSpan> via;  // of one turn only, not of all hundred
  for (size_t i = steps.size(); i-- > 0;) {
    const std::string target = i > 0 ? name_of(*steps[i - 1]->source) : usage->unit->name();
    message += " uses '" + target + "'";
    SourceSpan step = *steps[i];
    step.via = std::move(via);
    via = std::make_shared<const SourceSpan>(std::move(step));
  }
  throw Error(message, *via);
}

/// The name by which a template was asked for.
std::string Evaluator::name_of(const SourceText& source) const {
  for (const LoadedTemplate& loaded : loaded_) {
    if (loaded.source.get() == &source) return loaded.name;
  }
  return source.name;
}

}  // namespace forge::templating
