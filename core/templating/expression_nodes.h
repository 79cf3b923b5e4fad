#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/templating/ast.h"
#include "core/templating/expression_parser.h"

/// Making nodes of expressions; for the files that implement ExpressionParser.
namespace forge::templating::expression_nodes {

using ast::ExpressionPtr;

/// Deeper trees are refused, so that walking (and freeing) one never exhausts the stack.
constexpr int max_depth = 200;

inline int depth_of(const ExpressionPtr& expression) { return expression ? expression->depth : 0; }
inline int depth_of(const std::vector<ExpressionPtr>& expressions) {
  int depth = 0;
  for (const ExpressionPtr& expression : expressions) depth = std::max(depth, depth_of(expression));
  return depth;
}
inline int depth_of(const ast::CallArguments& arguments) {
  int depth = std::max(depth_of(arguments.positional), depth_of(arguments.more_positional));
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, depth_of(value));
  return std::max(depth, depth_of(arguments.more_named));
}

template <typename Node>
ExpressionPtr make(Node node, uint32_t position, int depth_below = 0) {
  if (depth_below >= max_depth) {
    throw SyntaxError("this expression is nested too deeply", position, "split it with {% set %}");
  }
  auto expression = std::make_unique<ast::Expression>();
  expression->node = std::move(node);
  expression->position = position;
  expression->depth = depth_below + 1;
  return expression;
}

}  // namespace forge::templating::expression_nodes

namespace forge::templating {

/// Bounds the parser's own recursion.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > expression_nodes::max_depth) {
      --parser_.nesting_;
      parser_.tokens_.fail("this expression is nested too deeply", "split it with {% set %}");
    }
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  ExpressionParser& parser_;
};

}  // namespace forge::templating
