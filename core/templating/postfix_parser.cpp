// What may follow an operand: attributes, subscripts, calls, filters, tests.

#include "core/base/text.h"
#include "core/templating/expression_nodes.h"
#include "core/templating/filters.h"
#include "core/templating/template_tests.h"

namespace forge::templating {

using namespace expression_nodes;
using ast::ExpressionPtr;

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr expression) {
  while (true) {
    if (tokens_.is_symbol(".")) {
      expression = parse_attribute(std::move(expression));
    } else if (tokens_.is_symbol("[")) {
      expression = parse_subscript(std::move(expression));
    } else if (tokens_.is_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr expression) {
  while (true) {
    if (tokens_.skip_symbol("|")) {
      expression = parse_filter(std::move(expression));
    } else if (tokens_.is_name("is")) {
      expression = parse_test(std::move(expression));
    } else if (tokens_.is_symbol("(")) {
      expression = parse_call(std::move(expression));
    } else {
      return expression;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const uint32_t position = tokens_.take().position;
  const int depth = object->depth;
  if (tokens_.is(Token::Kind::integer)) {
    ExpressionPtr key = parse_number();
    return make(ast::Subscript{std::move(object), std::move(key)}, position, depth);
  }
  const Token name = tokens_.expect(Token::Kind::name, "the name of an attribute");
  return make(ast::Attribute{std::move(object), std::string(name.text)}, name.position, depth);
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const uint32_t position = tokens_.take().position;
  ast::SliceOf slice;
  const auto part = [&]() -> ExpressionPtr {
    return tokens_.is_symbol(":") || tokens_.is_symbol("]") ? nullptr : parse_conditional();
  };
  if (!tokens_.is_symbol(":")) {
    ast::TupleLiteral keys;
    while (!tokens_.is_symbol("]") && !tokens_.is_symbol(":")) {
      if (!keys.items.empty()) tokens_.expect_symbol(",");
      keys.items.push_back(parse_conditional());
    }
    if (!tokens_.is_symbol(":")) {
      tokens_.expect_symbol("]");
      const int depth = std::max(object->depth, depth_of(keys.items) + 1);
      const bool single = keys.items.size() == 1;
      ExpressionPtr key =
          single ? std::move(keys.items[0]) : make(std::move(keys), position, depth);
      return make(ast::Subscript{std::move(object), std::move(key)}, position, depth);
    }
    if (keys.items.size() != 1) tokens_.fail("unexpected ':' in a subscript");
    slice.begin = std::move(keys.items[0]);
  }
  tokens_.expect_symbol(":");
  slice.end = part();
  if (tokens_.skip_symbol(":")) slice.step = part();
  tokens_.expect_symbol("]");
  const int depth =
      std::max({object->depth, depth_of(slice.begin), depth_of(slice.end), depth_of(slice.step)});
  slice.object = std::move(object);
  return make(std::move(slice), position, depth);
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  const uint32_t position = callee->position;
  ast::CallArguments arguments = parse_arguments();
  const int depth = std::max(callee->depth, depth_of(arguments));
  return make(ast::Call{std::move(callee), std::move(arguments)}, position, depth);
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name(tokens_.expect(Token::Kind::name, "a name").text);
  while (tokens_.skip_symbol("."))
    name += "." + std::string(tokens_.expect(Token::Kind::name, "a name").text);
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  const uint32_t position = tokens_.current().position;
  ast::Filter filter;
  filter.name = parse_dotted_name();
  if (!find_filter(filter.name)) {
    const std::string hint = did_you_mean(filter.name, filter_names());
    note_unknown("there is no filter '" + filter.name + "'", position, hint);
  }
  if (tokens_.is_symbol("(")) filter.arguments = parse_arguments();
  const int depth = std::max(depth_of(input), depth_of(filter.arguments));
  filter.input = std::move(input);
  return make(std::move(filter), position, depth);
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  tokens_.take();
  const bool negated = tokens_.skip_name("not");
  const uint32_t position = tokens_.current().position;
  ast::Test test;
  test.name = parse_dotted_name();
  if (!find_test(test.name)) {
    const std::string hint = did_you_mean(test.name, test_names());
    note_unknown("there is no test '" + test.name + "'", position, hint);
  }
  const bool ends = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and");
  const Token::Kind kind = tokens_.current().kind;
  const bool has_argument = kind == Token::Kind::name || kind == Token::Kind::string ||
                            kind == Token::Kind::integer || kind == Token::Kind::real ||
                            tokens_.is_symbol("[") || tokens_.is_symbol("{");
  if (tokens_.is_symbol("(")) {
    test.arguments = parse_arguments();
  } else if (has_argument && !ends) {
    if (tokens_.is_name("is")) tokens_.fail("tests with 'is' cannot be chained");
    test.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  const int depth = std::max(input->depth, depth_of(test.arguments));
  test.input = std::move(input);
  ExpressionPtr expression = make(std::move(test), position, depth);
  if (!negated) return expression;
  return make(
      ast::Unary{ast::Unary::Operator::logical_not, std::move(expression)}, position, depth + 1);
}

ast::CallArguments ExpressionParser::parse_arguments() {
  const Nesting nesting(*this);
  ast::CallArguments arguments;
  tokens_.expect_symbol("(");
  while (!tokens_.is_symbol(")")) {
    parse_argument(arguments);
    if (!tokens_.is_symbol(")")) tokens_.expect_symbol(",");
  }
  tokens_.take();
  return arguments;
}

void ExpressionParser::parse_argument(ast::CallArguments& arguments) {
  const auto ensure = [&](bool in_order) {
    if (!in_order)
      tokens_.fail("invalid order of arguments",
                   "first positional, then named, then *args, **kwargs");
  };
  if (tokens_.skip_symbol("*")) {
    ensure(!arguments.more_positional && !arguments.more_named);
    arguments.more_positional = parse_conditional();
  } else if (tokens_.skip_symbol("**")) {
    ensure(!arguments.more_named);
    arguments.more_named = parse_conditional();
  } else if (tokens_.is(Token::Kind::name) &&
             TokenStream::is(tokens_.following(), Token::Kind::symbol, "=")) {
    ensure(!arguments.more_named);
    std::string name(tokens_.take().text);
    tokens_.take();
    for (const auto& [other, value] : arguments.named) {
      if (other == name) tokens_.fail("the argument '" + name + "' is given twice");
    }
    arguments.named.emplace_back(std::move(name), parse_conditional());
  } else {
    ensure(!arguments.more_positional && !arguments.more_named && arguments.named.empty());
    arguments.positional.push_back(parse_conditional());
  }
}

}  // namespace forge::templating
