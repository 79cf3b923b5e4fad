#include "core/jinja/static_analysis.h"

#include <algorithm>

namespace forge::jinja {
namespace {

/// "x" or "ns.x" for a name or an attribute of one (also as `ns['x']`), else "".
std::string path_of(const ast::Expression& expression) {
  if (const auto* name = std::get_if<ast::Name>(&expression.node)) return name->name;
  if (const auto* attribute = std::get_if<ast::Attribute>(&expression.node)) {
    const auto* owner = std::get_if<ast::Name>(&attribute->object->node);
    return owner ? owner->name + "." + attribute->name : "";
  }
  if (const auto* subscript = std::get_if<ast::Subscript>(&expression.node)) {
    const auto* owner = std::get_if<ast::Name>(&subscript->object->node);
    const auto* key = std::get_if<ast::Constant>(&subscript->key->node);
    return owner && key && key->value.is_string() ? owner->name + "." + key->value.as_string() : "";
  }
  return "";
}

bool is_call_of(const ast::Expression& expression, std::string_view function) {
  const auto* call = std::get_if<ast::Call>(&expression.node);
  const auto* name = call ? std::get_if<ast::Name>(&call->callee->node) : nullptr;
  return name && name->name == function;
}

/// Adds the template names that an expression spells out; false where it may give others too.
bool add_names(const ast::Expression& expression, std::vector<std::string>& names) {
  if (const auto* constant = std::get_if<ast::Constant>(&expression.node)) {
    if (!constant->value.is_string()) return false;
    names.push_back(constant->value.as_string());
    return true;
  }
  const auto add_all = [&](const std::vector<ast::ExpressionPtr>& items) {
    return std::all_of(
        items.begin(), items.end(), [&](const auto& item) { return add_names(*item, names); });
  };
  if (const auto* list = std::get_if<ast::ListLiteral>(&expression.node))
    return add_all(list->items);
  if (const auto* tuple = std::get_if<ast::TupleLiteral>(&expression.node))
    return add_all(tuple->items);
  if (const auto* choice = std::get_if<ast::Conditional>(&expression.node)) {
    return choice->otherwise && add_names(*choice->value, names) &&
           add_names(*choice->otherwise, names);
  }
  return false;
}

/// Walks a template's tree and notes what it finds.
class Analyzer {
 public:
  Analyzer(const ParsedTemplate& parsed, TemplateAnalysis& result)
      : parsed_(parsed), result_(result) {}

  void visit(const ast::Body& body) {
    for (const ast::Statement& statement : body) {
      position_ = statement.position;
      end_ = std::max(end_, position_);
      std::visit([this](const auto& node) { visit(node); }, statement.node);
    }
  }

 private:
  SourceSpan here(uint32_t position) const { return parsed_.span(position, nullptr); }

  // Names.
  void write(const std::string& path, VariableWrite::Kind kind, uint32_t position) {
    result_.writes.push_back({path, kind, false, here(position)});
  }
  void write(const ast::Target& target, VariableWrite::Kind kind) {
    if (target.is_tuple) {
      for (const ast::Target& part : target.parts) write(part, kind);
    } else if (target.attribute.empty()) {
      write(target.name, kind, target.position);
    } else {
      write(target.name + "." + target.attribute, kind, target.position);
    }
  }
  void read(const std::string& path, uint32_t position, bool is_optional) {
    const bool known = std::find(defined_.begin(), defined_.end(), path) != defined_.end();
    result_.reads.push_back({path, is_optional || known, here(position)});
  }
  /// An expression for which an undefined value does no harm.
  void visit_optional(const ast::ExpressionPtr& expression) {
    const std::string path = path_of(*expression);
    if (path.empty()) return visit(expression);
    read(path, expression->position, true);
    const size_t dot = path.find('.');
    if (dot != std::string::npos) read(path.substr(0, dot), expression->position, false);
  }

  /// Adds the paths that are defined wherever the test holds.
  static void add_defined(const ast::Expression& test, std::vector<std::string>& paths) {
    if (const auto* both = std::get_if<ast::Logical>(&test.node); both && both->is_and) {
      add_defined(*both->left, paths);
      add_defined(*both->right, paths);
    } else if (const auto* is = std::get_if<ast::Test>(&test.node); is && is->name == "defined") {
      const std::string path = path_of(*is->input);
      if (!path.empty()) paths.push_back(path);
    }
  }
  template <typename Action>
  void with_condition(const ast::ExpressionPtr& test, Action action) {
    const size_t outer = defined_.size();
    add_defined(*test, defined_);
    action();
    defined_.resize(outer);
  }

  // Expressions.
  void visit(const ast::ExpressionPtr& expression) {
    if (!expression) return;
    const std::string path = path_of(*expression);
    if (!path.empty()) read(path, expression->position, false);
    const auto& node = expression->node;
    if (const auto* filter = std::get_if<ast::Filter>(&node)) return visit(*filter);
    if (const auto* test = std::get_if<ast::Test>(&node)) return visit(*test);
    if (const auto* choice = std::get_if<ast::Conditional>(&node)) return visit(*choice);
    const auto* both = std::get_if<ast::Logical>(&node);
    if (both && both->is_and) return visit_and(*both);
    visit_operands(*expression);
  }
  template <typename Node>
  void visit_operands(const Node& node) {
    ast::for_each_operand(node, [this](const ast::ExpressionPtr& operand) { visit(operand); });
  }
  void visit(const ast::Filter& node) {
    const auto& arguments = node.arguments;
    const bool has_value = !arguments.positional.empty() || !arguments.named.empty() ||
                           arguments.more_positional || arguments.more_named;
    const bool gives_fallback =
        node.name == "default" || node.name == "d" || (node.name == "toyaml" && has_value);
    if (node.input && gives_fallback) {
      visit_optional(node.input);
    } else {
      visit(node.input);
    }
    visit_operands(arguments);
  }
  void visit(const ast::Test& node) {
    if (node.name == "defined" || node.name == "undefined") {
      visit_optional(node.input);
    } else {
      visit(node.input);
    }
    visit_operands(node.arguments);
  }
  void visit_and(const ast::Logical& node) {
    visit(node.left);
    with_condition(node.left, [&] { visit(node.right); });
  }
  void visit(const ast::Conditional& node) {
    visit(node.test);
    with_condition(node.test, [&] { visit(node.value); });
    visit(node.otherwise);
  }

  // Statements.
  void add_reference(Reference::Kind kind,
                     const ast::ExpressionPtr& name,
                     bool ignores_missing = false) {
    std::vector<std::string> names;
    if (!add_names(*name, names)) names.clear();
    result_.references.push_back(
        {kind, std::move(names), conditions_ > 0, ignores_missing, here(position_)});
    visit(name);
  }
  void visit(const ast::Literal& node) {
    if (node.text.empty()) return;
    end_ = std::max(end_, position_ + static_cast<uint32_t>(node.text.size()) - 1);
  }
  void visit(const ast::Print& node) { visit(node.value); }
  void visit(const ast::If& node) {
    for (const auto& [test, body] : node.branches) {
      visit(test);
      with_condition(test, [&, &body = body] { visit_conditional(body); });
    }
    visit_conditional(node.otherwise);
  }
  void visit_conditional(const ast::Body& body) {
    if (body.empty()) return;
    const int first_line = here(body.front().position).line;
    ++conditions_;
    visit(body);
    --conditions_;
    result_.conditionals.push_back({first_line, here(end_).line});
  }
  void visit(const ast::For& node) {
    visit(node.iterable);
    write(node.target, VariableWrite::Kind::loop);
    visit(node.test);
    visit_conditional(node.body);
    visit_conditional(node.otherwise);
  }
  void visit(const ast::Set& node) {
    visit(node.value);
    write(node.target, VariableWrite::Kind::assignment);
    if (!is_call_of(*node.value, "namespace") || node.target.is_tuple) return;
    result_.writes.back().makes_namespace = true;
    if (!node.target.attribute.empty()) return;
    for (const auto& [name, value] : std::get<ast::Call>(node.value->node).arguments.named) {
      write(node.target.name + "." + name, VariableWrite::Kind::assignment, value->position);
    }
  }
  void visit(const ast::SetBlock& node) {
    visit(node.filter);
    visit(node.body);
    write(node.target, VariableWrite::Kind::assignment);
  }
  void visit(const ast::FilterBlock& node) {
    visit(node.filter);
    visit(node.body);
  }
  void visit(const ast::With& node) {
    for (const auto& [target, value] : node.assignments) {
      visit(value);
      write(target, VariableWrite::Kind::with);
    }
    visit(node.body);
  }
  void visit(const ast::Routine& routine) {
    for (const std::string& name : routine.parameters) {
      write(name, VariableWrite::Kind::parameter, position_);
    }
    for (const ast::ExpressionPtr& value : routine.defaults) visit(value);
    visit(routine.body);
  }
  void visit(const ast::MacroDefinition& node) {
    write(node.routine.name, VariableWrite::Kind::macro, position_);
    visit(node.routine);
  }
  void visit(const ast::CallBlock& node) {
    visit(node.call);
    visit(node.routine);
  }
  void visit(const ast::BlockUse& node) {
    const ast::Block& block = *node.block;
    const std::string enclosing = std::exchange(block_, block.name);
    result_.blocks.push_back(
        {block.name, enclosing, block.required, block.uses_super, here(position_), 0});
    const size_t index = result_.blocks.size() - 1;
    visit(block.body);
    result_.blocks[index].last_line = here(end_).line;
    block_ = enclosing;
  }
  void visit(const ast::Extends& node) { add_reference(Reference::Kind::extends, node.parent); }
  void visit(const ast::Include& node) {
    add_reference(Reference::Kind::include, node.name, node.ignore_missing);
  }
  void visit(const ast::Import& node) {
    add_reference(Reference::Kind::import, node.name);
    write(node.target, VariableWrite::Kind::import, position_);
  }
  void visit(const ast::FromImport& node) {
    add_reference(Reference::Kind::from_import, node.name);
    for (const auto& [name, local] : node.names) {
      write(local, VariableWrite::Kind::import, position_);
    }
  }

  const ParsedTemplate& parsed_;
  TemplateAnalysis& result_;
  std::string block_;                 ///< the block around the statement
  std::vector<std::string> defined_;  ///< paths that tests around it found defined
  uint32_t position_ = 0;             ///< of the statement
  uint32_t end_ = 0;                  ///< of what was visited
  int conditions_ = 0;                ///< `if` and `for` around it
};

}  // namespace

const char* name_of(Reference::Kind kind) {
  static constexpr const char* names[] = {"extends", "include", "import", "from"};
  return names[static_cast<size_t>(kind)];
}

const Reference* TemplateAnalysis::parent() const {
  for (const Reference& reference : references) {
    if (reference.kind == Reference::Kind::extends && !reference.is_expression()) return &reference;
  }
  return nullptr;
}

const BlockInfo* TemplateAnalysis::block_at(int line) const {
  const BlockInfo* innermost = nullptr;  // blocks stand in order: an inner one comes later
  for (const BlockInfo& block : blocks) {
    if (block.span.line <= line && line <= block.last_line) innermost = &block;
  }
  return innermost;
}

bool TemplateAnalysis::is_conditional(int line) const {
  return std::any_of(conditionals.begin(), conditionals.end(), [&](const LineRange& range) {
    return range.contains(line);
  });
}

TemplateAnalysis analyze_template(const TemplateSource& source) {
  TemplateAnalysis result;
  result.source = source.text();
  result.inline_name = source.text()->inline_name;
  result.marker = source.marker();
  try {
    const ParsedTemplate& parsed = source.parsed(nullptr);
    Analyzer(parsed, result).visit(parsed.tree().body);
  } catch (const Error& error) {
    result.problem = error;
  }
  return result;
}

std::vector<TemplateAnalysis> analyze_template(const TemplateFile& file) {
  std::vector<TemplateAnalysis> parts = {analyze_template(*file.own)};
  for (const TemplateSourcePtr& source : file.inlines) parts.push_back(analyze_template(*source));
  return parts;
}

}  // namespace forge::jinja
