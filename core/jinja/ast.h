#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/python/operators.h"
#include "core/python/value.h"

namespace forge::jinja {
using namespace python;  // templates compute with Python's values
}

/// Syntax trees of templates. A `position` is an offset into the preprocessed text.
namespace forge::jinja::ast {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

// Expressions.

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
};
struct TupleLiteral {
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Subscript {
  ExpressionPtr object, key;
};
/// `object[begin:end:step]`; a part that is left out is null.
struct SliceOf {
  ExpressionPtr object, begin, end, step;
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  ///< after `*` and `**`, or null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr input;  ///< null: the text of a filter block or set block
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  CallArguments arguments;
};
struct Binary {
  BinaryOperator operation;
  ExpressionPtr left, right;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Unary {
  enum class Operator { logical_not, minus, plus } operation;
  ExpressionPtr operand;
};
/// `a ~ b ~ c`
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
/// `a < b <= c`
struct ComparisonChain {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
/// `value if test else otherwise`; `otherwise` may be null.
struct Conditional {
  ExpressionPtr test, value, otherwise;
};

struct Expression {
  std::variant<Constant,
               Name,
               ListLiteral,
               TupleLiteral,
               DictLiteral,
               Attribute,
               Subscript,
               SliceOf,
               Call,
               Filter,
               Test,
               Binary,
               Logical,
               Unary,
               Concatenation,
               ComparisonChain,
               Conditional>
      node;
  uint32_t position = 0;
  int depth = 1;  ///< of the tree below, bounded by the parser
};

/// Calls `visit` with the operands of a call, which may be null.
template <typename Visit>
void for_each_operand(const CallArguments& arguments, const Visit& visit) {
  for (const ExpressionPtr& value : arguments.positional) visit(value);
  for (const auto& [name, value] : arguments.named) visit(value);
  visit(arguments.more_positional);
  visit(arguments.more_named);
}

/// Calls `visit` with each operand of an expression's node; some may be null.
template <typename Visit>
struct OperandWalk {
  const Visit& visit;

  void operator()(const Constant&) const {}
  void operator()(const Name&) const {}
  void operator()(const ListLiteral& node) const { all(node.items); }
  void operator()(const TupleLiteral& node) const { all(node.items); }
  void operator()(const DictLiteral& node) const {
    for (const auto& [key, value] : node.entries) each(key, value);
  }
  void operator()(const Attribute& node) const { visit(node.object); }
  void operator()(const Subscript& node) const { each(node.object, node.key); }
  void operator()(const SliceOf& node) const { each(node.object, node.begin, node.end, node.step); }
  void operator()(const Call& node) const {
    visit(node.callee);
    for_each_operand(node.arguments, visit);
  }
  void operator()(const Filter& node) const {
    visit(node.input);
    for_each_operand(node.arguments, visit);
  }
  void operator()(const Test& node) const {
    visit(node.input);
    for_each_operand(node.arguments, visit);
  }
  void operator()(const Binary& node) const { each(node.left, node.right); }
  void operator()(const Logical& node) const { each(node.left, node.right); }
  void operator()(const Unary& node) const { visit(node.operand); }
  void operator()(const Concatenation& node) const { all(node.parts); }
  void operator()(const ComparisonChain& node) const {
    visit(node.first);
    for (const auto& [comparison, operand] : node.rest) visit(operand);
  }
  void operator()(const Conditional& node) const { each(node.test, node.value, node.otherwise); }

 private:
  template <typename... Operands>
  void each(const Operands&... operands) const {
    (visit(operands), ...);
  }
  void all(const std::vector<ExpressionPtr>& expressions) const {
    for (const ExpressionPtr& expression : expressions) visit(expression);
  }
};

template <typename Visit>
void for_each_operand(const Expression& expression, const Visit& visit) {
  std::visit(OperandWalk<Visit>{visit}, expression.node);
}

// Statements.

/// What `set`, `for` and `with` assign to: a name, `namespace.attribute`, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
  bool is_tuple = false;
  uint32_t position = 0;
};

/// Names that a frame (the body of a template, block, loop, macro …) assigns before it reads them
/// itself. Jinja decides that from the text alone: until the assignment runs, such a name is
/// undefined in the frame and in all frames within it, whatever the context holds.
using UnassignedNames = std::vector<std::string>;

struct Literal {
  std::string_view text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr test;  ///< `if` of the loop, or null
  Body body, otherwise;
  UnassignedNames body_unassigned, otherwise_unassigned;
  bool recursive = false;
  bool uses_loop = false;  ///< the variable `loop` exists only where the body names it
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  ///< or null
  Body body;
  UnassignedNames unassigned;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
  UnassignedNames unassigned;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
  UnassignedNames unassigned;
};
/// Parameters and body of a macro or of a call block.
struct Routine {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  ///< of the last parameters
  Body body;
  UnassignedNames unassigned;
  bool uses_caller = false, uses_named = false, uses_positional = false;  ///< caller, kwargs …
};
struct MacroDefinition {
  Routine routine;
};
struct CallBlock {
  Routine routine;
  ExpressionPtr call;
};
struct Block {
  std::string name;
  bool scoped = false, required = false;
  bool uses_self = false, uses_super = false;
  Body body;
  UnassignedNames unassigned;
};
struct BlockUse {
  const Block* block;  ///< owned by the Template
};
struct Extends {
  ExpressionPtr parent;
};
struct Include {
  ExpressionPtr name;
  bool ignore_missing = false, with_context = true;
};
struct Import {
  ExpressionPtr name;
  std::string target;
  bool with_context = false;
};
struct FromImport {
  ExpressionPtr name;
  std::vector<std::pair<std::string, std::string>> names;  ///< (exported, local)
  bool with_context = false;
};

struct Statement {
  std::variant<Literal,
               Print,
               If,
               For,
               Set,
               SetBlock,
               FilterBlock,
               With,
               MacroDefinition,
               CallBlock,
               BlockUse,
               Extends,
               Include,
               Import,
               FromImport>
      node;
  uint32_t position = 0;
};

struct Template {
  Body body;
  UnassignedNames unassigned;
  std::map<std::string, std::unique_ptr<Block>> blocks;
  bool uses_self = false;
};

}  // namespace forge::jinja::ast
