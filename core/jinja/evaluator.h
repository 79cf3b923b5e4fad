#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/jinja/ast.h"
#include "core/jinja/loader.h"
#include "core/jinja/render.h"
#include "core/jinja/runtime.h"
#include "core/python/operation.h"
#include "core/python/value.h"

namespace forge::jinja {

/// Runs the templates of one render by walking their trees.
///
/// Names are looked up in the frames around a statement, then in the context, then among the
/// caller's variables and the globals. Everything that a render allocates lives as long as the
/// Evaluator, which breaks reference cycles at its end.
class Evaluator {
 public:
  /// All three outlive the evaluator. `templates` keeps what places in the result refer to.
  Evaluator(const RenderRequest& request, TemplateCache& cache, RenderedTemplates& templates);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Renders the requested template. Throws Error.
  TracedText render();
  const std::vector<LoadedTemplate>& loaded() const { return loaded_; }
  const RenderRequest& request() const { return request_; }

  // For filters, tests, functions and objects.
  Value call(const Value& callee, const Arguments& arguments);
  Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments);
  bool apply_test(const std::string& name, const Value& input, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  TracedText render_block(const ContextPtr& context, const std::string& name, size_t index);
  TracedText run_loop(const ast::For& loop, const Frame& frame, List items, int depth);

 private:
  class Level;

  // Expressions.
  Value evaluate(const ast::Expression& expression, const Frame& frame);
  Value evaluate_optional(const ast::ExpressionPtr& expression, const Frame& frame);
  Value visit(const ast::Constant& node, const Frame& frame, Place place);
  Value visit(const ast::Name& node, const Frame& frame, Place place);
  Value visit(const ast::ListLiteral& node, const Frame& frame, Place place);
  Value visit(const ast::TupleLiteral& node, const Frame& frame, Place place);
  Value visit(const ast::DictLiteral& node, const Frame& frame, Place place);
  Value visit(const ast::Attribute& node, const Frame& frame, Place place);
  Value visit(const ast::Subscript& node, const Frame& frame, Place place);
  Value visit(const ast::SliceOf& node, const Frame& frame, Place place);
  Value visit(const ast::Call& node, const Frame& frame, Place place);
  Value visit(const ast::Filter& node, const Frame& frame, Place place);
  Value visit(const ast::Test& node, const Frame& frame, Place place);
  Value visit(const ast::Binary& node, const Frame& frame, Place place);
  Value visit(const ast::Logical& node, const Frame& frame, Place place);
  Value visit(const ast::Unary& node, const Frame& frame, Place place);
  Value visit(const ast::Concatenation& node, const Frame& frame, Place place);
  Value visit(const ast::ComparisonChain& node, const Frame& frame, Place place);
  Value visit(const ast::Conditional& node, const Frame& frame, Place place);
  List evaluate_all(const std::vector<ast::ExpressionPtr>& expressions, const Frame& frame);
  Arguments evaluate_arguments(const ast::CallArguments& node, const Frame& frame);
  Value call_expression(const ast::Call& node,
                        const Frame& frame,
                        Place place,
                        const Value* caller);
  Value apply_filters(const ast::Expression& filter, Value input, const Frame& frame);

  // Statements.
  void run(const ast::Body& body, const Frame& frame);
  void run(const ast::Statement& statement, const Frame& frame);
  void visit(const ast::Literal& node, const Frame& frame, Place place);
  void visit(const ast::Print& node, const Frame& frame, Place place);
  void visit(const ast::If& node, const Frame& frame, Place place);
  void visit(const ast::For& node, const Frame& frame, Place place);
  void visit(const ast::Set& node, const Frame& frame, Place place);
  void visit(const ast::SetBlock& node, const Frame& frame, Place place);
  void visit(const ast::FilterBlock& node, const Frame& frame, Place place);
  void visit(const ast::With& node, const Frame& frame, Place place);
  void visit(const ast::MacroDefinition& node, const Frame& frame, Place place);
  void visit(const ast::CallBlock& node, const Frame& frame, Place place);
  void visit(const ast::BlockUse& node, const Frame& frame, Place place);
  void visit(const ast::Extends& node, const Frame& frame, Place place);
  void visit(const ast::Include& node, const Frame& frame, Place place);
  void visit(const ast::Import& node, const Frame& frame, Place place);
  void visit(const ast::FromImport& node, const Frame& frame, Place place);
  void print(const Value& value, const Frame& frame, Place place);
  void assign(const ast::Target& target, const Value& value, const Frame& frame);
  void define(const std::string& name, const Value& value, const Frame& frame, bool exported);
  void run_loop_bodies(const ast::For& loop, const Frame& frame, List items, int depth);
  void run_block(const ContextPtr& context,
                 const std::string& name,
                 size_t index,
                 TracedText& output);

  // Templates.
  const TemplateUse* load_template(const std::vector<std::string>& names,
                                   const char* relation,
                                   Place place,
                                   bool may_be_missing);
  const TemplateUse* intern_use(const TemplateInstance* instance, Place place);
  std::vector<std::string> template_names(const Value& value, bool many, Place place) const;
  void run_template(const TemplateUse* use, const ContextPtr& context, TracedText& output);
  ContextPtr keep(ContextPtr context);
  ContextPtr make_context(const TemplateUse* use);
  ContextPtr nested_context(const Frame& frame);
  ContextPtr snapshot_context(const Frame& frame);
  std::shared_ptr<Module> import_module(const ast::Expression& name,
                                        bool with_context,
                                        const Frame& frame,
                                        Place place);
  std::shared_ptr<Module> make_module(const TemplateUse* use, const ContextPtr& context);
  std::shared_ptr<Module> shared_module(const TemplateUse* use);
  Value make_namespace(const Arguments& arguments);
  Value make_macro(const ast::Routine& routine, const Frame& frame);

  // Errors and limits.
  [[noreturn]] void fail(const std::string& message, Place place, std::string hint = "") const;
  [[noreturn]] void fail_undefined(const Value& undefined, const Frame& frame, Place place) const;
  template <typename Action>
  auto guarded(const Frame& frame, Place place, Action action);
  void count_iteration(Place place);
  [[noreturn]] void fail_nesting(const TemplateUse* use) const;
  std::string name_of(const SourceText& source) const;

  const RenderRequest& request_;
  RenderedTemplates& templates_;
  Loader loader_;
  VariableMap globals_;
  VariableMap base_;  ///< the caller's variables over the globals
  std::vector<LoadedTemplate> loaded_;
  std::map<std::tuple<const TemplateInstance*, const TemplateUse*, uint32_t>, const TemplateUse*>
      use_of_;
  std::map<const TemplateInstance*, std::shared_ptr<Module>> modules_;
  std::vector<std::weak_ptr<Context>> contexts_;
  std::vector<std::weak_ptr<Scope>> scopes_;  ///< those that a macro keeps alive
  std::vector<std::weak_ptr<Namespace>> namespaces_;
  Place call_place_;  ///< of the call that is being made
  int depth_ = 0;
  int template_depth_ = 0;
  int64_t iterations_ = 0;
};

/// One level deeper in the walk; refuses to go so deep that the stack could end.
class Evaluator::Level {
 public:
  Level(Evaluator& evaluator, Place place) : evaluator_(evaluator) {
    constexpr int max_depth = 1500;
    if (evaluator_.depth_ >= max_depth) {
      evaluator_.fail("templates, macros or blocks call each other too deeply", place);
    }
    if (detail::remaining_work < cost_of_step) {
      evaluator_.fail("this template does too much work", place, work_hint);
    }
    charge(cost_of_step);
    ++evaluator_.depth_;
  }
  ~Level() { --evaluator_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Evaluator& evaluator_;
};

/// Runs `action`; what it throws without a place becomes an Error at `place`.
template <typename Action>
auto Evaluator::guarded(const Frame& frame, Place place, Action action) {
  try {
    return action();
  } catch (const UndefinedError& error) {
    fail_undefined(error.undefined, frame, place);
  } catch (const OperationError& error) {
    fail(error.what(), place, error.hint);
  }
}

}  // namespace forge::jinja
