#include "core/templating/expression_parser.h"

#include <charconv>
#include <optional>

#include "core/templating/expression_nodes.h"

namespace forge::templating {

using namespace expression_nodes;
using ast::ExpressionPtr;

namespace {

std::optional<Comparison> comparison_of(const Token& token) {
  if (token.kind != Token::Kind::symbol) return std::nullopt;
  if (token.text == "==") return Comparison::equal;
  if (token.text == "!=") return Comparison::not_equal;
  if (token.text == "<") return Comparison::less;
  if (token.text == "<=") return Comparison::less_equal;
  if (token.text == ">") return Comparison::greater;
  if (token.text == ">=") return Comparison::greater_equal;
  return std::nullopt;
}

std::optional<BinaryOperator> product_of(const Token& token) {
  if (token.kind != Token::Kind::symbol) return std::nullopt;
  if (token.text == "*") return BinaryOperator::multiply;
  if (token.text == "/") return BinaryOperator::divide;
  if (token.text == "//") return BinaryOperator::floor_divide;
  if (token.text == "%") return BinaryOperator::modulo;
  return std::nullopt;
}

ExpressionPtr binary(BinaryOperator operation,
                     ExpressionPtr left,
                     ExpressionPtr right,
                     uint32_t position) {
  const int depth = std::max(left->depth, right->depth);
  return make(ast::Binary{operation, std::move(left), std::move(right)}, position, depth);
}

ExpressionPtr logical(bool is_and, ExpressionPtr left, ExpressionPtr right, uint32_t position) {
  const int depth = std::max(left->depth, right->depth);
  return make(ast::Logical{is_and, std::move(left), std::move(right)}, position, depth);
}

}  // namespace

std::vector<NameUses*> ExpressionParser::exchange_watchers(std::vector<NameUses*> watchers) {
  return std::exchange(watchers_, std::move(watchers));
}

void ExpressionParser::note_loop_use() {
  for (NameUses* uses : watchers_) uses->loop = true;
}

ExpressionPtr ExpressionParser::parse() { return checked(parse_conditional()); }

ExpressionPtr ExpressionParser::parse_tuple(bool with_conditional, std::string_view end_name) {
  return checked(parse_items(with_conditional, end_name));
}

ExpressionPtr ExpressionParser::parse_filter_chain() {
  ExpressionPtr filter = parse_filter(nullptr);
  while (tokens_.skip_symbol("|")) filter = parse_filter(std::move(filter));
  return checked(std::move(filter));
}

/// Refuses an expression that surely runs a filter or test which does not exist. What stands under
/// a condition may never run; there it is an error only when it does.
ExpressionPtr ExpressionParser::checked(ExpressionPtr expression) {
  if (unknown_) throw SyntaxError(*unknown_);
  return expression;
}

void ExpressionParser::note_unknown(const std::string& message,
                                    uint32_t position,
                                    std::string hint) {
  if (conditional_depth == 0 && !unknown_) unknown_.emplace(message, position, std::move(hint));
}

ExpressionPtr ExpressionParser::parse_conditional() {
  const Nesting nesting(*this);
  const bool had_unknown = unknown_.has_value();
  ExpressionPtr value = parse_or();
  while (tokens_.is_name("if")) {
    const uint32_t position = tokens_.take().position;
    if (!had_unknown) unknown_.reset();
    ++conditional_depth;
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise = tokens_.skip_name("else") ? parse_conditional() : nullptr;
    --conditional_depth;
    const int depth = std::max({value->depth, test->depth, depth_of(otherwise)});
    value = make(
        ast::Conditional{std::move(test), std::move(value), std::move(otherwise)}, position, depth);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (tokens_.is_name("or")) {
    const uint32_t position = tokens_.take().position;
    left = logical(false, std::move(left), parse_and(), position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (tokens_.is_name("and")) {
    const uint32_t position = tokens_.take().position;
    left = logical(true, std::move(left), parse_not(), position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  const uint32_t position = tokens_.take().position;
  ExpressionPtr operand = parse_not();
  const int depth = operand->depth;
  return make(ast::Unary{ast::Unary::Operator::logical_not, std::move(operand)}, position, depth);
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const uint32_t position = tokens_.current().position;
  ast::ComparisonChain chain;
  chain.first = parse_sum();
  int depth = chain.first->depth;
  while (true) {
    std::optional<Comparison> comparison = comparison_of(tokens_.current());
    if (tokens_.is_name("in")) comparison = Comparison::in;
    if (tokens_.is_name("not") && TokenStream::is(tokens_.following(), Token::Kind::name, "in")) {
      tokens_.take();
      comparison = Comparison::not_in;
    }
    if (!comparison) break;
    tokens_.take();
    chain.rest.emplace_back(*comparison, parse_sum());
    depth = std::max(depth, chain.rest.back().second->depth);
  }
  if (chain.rest.empty()) return std::move(chain.first);
  return make(std::move(chain), position, depth);
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (tokens_.is_symbol("+") || tokens_.is_symbol("-")) {
    const Token token = tokens_.take();
    const BinaryOperator operation =
        token.text == "+" ? BinaryOperator::add : BinaryOperator::subtract;
    left = binary(operation, std::move(left), parse_concatenation(), token.position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const uint32_t position = tokens_.current().position;
  ast::Concatenation concatenation;
  concatenation.parts.push_back(parse_product());
  while (tokens_.skip_symbol("~")) concatenation.parts.push_back(parse_product());
  if (concatenation.parts.size() == 1) return std::move(concatenation.parts[0]);
  const int depth = depth_of(concatenation.parts);
  return make(std::move(concatenation), position, depth);
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  while (const auto operation = product_of(tokens_.current())) {
    const uint32_t position = tokens_.take().position;
    left = binary(*operation, std::move(left), parse_power(), position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary(true);
  while (tokens_.is_symbol("**")) {
    const uint32_t position = tokens_.take().position;
    left = binary(BinaryOperator::power, std::move(left), parse_unary(true), position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPtr expression;
  if (tokens_.is_symbol("-") || tokens_.is_symbol("+")) {
    const Token token = tokens_.take();
    ExpressionPtr operand = parse_unary(false);
    const int depth = operand->depth;
    const auto operation =
        token.text == "-" ? ast::Unary::Operator::minus : ast::Unary::Operator::plus;
    expression = make(ast::Unary{operation, std::move(operand)}, token.position, depth);
  } else {
    expression = parse_primary();
  }
  expression = parse_postfix(std::move(expression));
  return with_filters ? parse_filters_and_tests(std::move(expression)) : std::move(expression);
}

ExpressionPtr ExpressionParser::parse_primary() {
  switch (tokens_.current().kind) {
    case Token::Kind::name: return parse_name();
    case Token::Kind::string: return parse_string();
    case Token::Kind::integer:
    case Token::Kind::real: return parse_number();
    default: break;
  }
  if (tokens_.is_symbol("(")) return parse_parentheses();
  if (tokens_.is_symbol("[")) return parse_list();
  if (tokens_.is_symbol("{")) return parse_dict();
  tokens_.fail("unexpected " + describe(tokens_.current()) + ", expected an expression");
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token token = tokens_.take();
  const std::string name(token.text);
  if (name == "true" || name == "True")
    return make(ast::Constant{Value::boolean(true)}, token.position);
  if (name == "false" || name == "False")
    return make(ast::Constant{Value::boolean(false)}, token.position);
  if (name == "none" || name == "None") return make(ast::Constant{Value()}, token.position);
  for (NameUses* uses : watchers_) {
    if (name == "loop") uses->loop = true;
    if (name == "caller") uses->caller = true;
    if (name == "kwargs") uses->kwargs = true;
    if (name == "varargs") uses->varargs = true;
    if (name == "self") uses->self = true;
    if (name == "super") uses->super = true;
  }
  return make(ast::Name{name}, token.position);
}

ExpressionPtr ExpressionParser::parse_string() {
  const uint32_t position = tokens_.current().position;
  std::string value;
  while (tokens_.is(Token::Kind::string)) value += string_value(tokens_.take());  // 'a' 'b' is 'ab'
  return make(ast::Constant{Value::string(std::move(value))}, position);
}

ExpressionPtr ExpressionParser::parse_number() {
  const Token token = tokens_.take();
  std::string digits(token.text);
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  if (token.kind == Token::Kind::real) {
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // Out of range, as 1e999: strtod knows infinity from zero.
    if (read.ec != std::errc()) value = std::strtod(digits.c_str(), nullptr);
    return make(ast::Constant{Value::real(value)}, token.position);
  }
  int base = 10;
  const char letter = digits.size() > 1 ? static_cast<char>(digits[1] | 0x20) : '\0';
  if (letter == 'x') base = 16;
  if (letter == 'o') base = 8;
  if (letter == 'b') base = 2;
  const size_t begin = base == 10 ? 0 : 2;
  int64_t value = 0;
  const auto read =
      std::from_chars(digits.data() + begin, digits.data() + digits.size(), value, base);
  if (read.ec != std::errc()) {
    throw SyntaxError("this integer does not fit 64 bits", token.position, "write it as a float");
  }
  return make(ast::Constant{Value::integer(value)}, token.position);
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const uint32_t position = tokens_.take().position;
  if (tokens_.skip_symbol(")")) return make(ast::TupleLiteral{}, position);
  ExpressionPtr inner = parse_items(true, "");
  tokens_.expect_symbol(")");
  return inner;
}

ExpressionPtr ExpressionParser::parse_list() {
  ast::ListLiteral list;
  const uint32_t position = tokens_.take().position;
  while (!tokens_.is_symbol("]")) {
    if (!list.items.empty()) tokens_.expect_symbol(",");
    if (tokens_.is_symbol("]")) break;
    list.items.push_back(parse_conditional());
  }
  tokens_.expect_symbol("]");
  const int depth = depth_of(list.items);
  return make(std::move(list), position, depth);
}

ExpressionPtr ExpressionParser::parse_dict() {
  ast::DictLiteral dict;
  int depth = 0;
  const uint32_t position = tokens_.take().position;
  while (!tokens_.is_symbol("}")) {
    if (!dict.entries.empty()) tokens_.expect_symbol(",");
    if (tokens_.is_symbol("}")) break;
    ExpressionPtr key = parse_conditional();
    tokens_.expect_symbol(":");
    ExpressionPtr value = parse_conditional();
    depth = std::max({depth, key->depth, value->depth});
    dict.entries.emplace_back(std::move(key), std::move(value));
  }
  tokens_.expect_symbol("}");
  return make(std::move(dict), position, depth);
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  if (tokens_.is(Token::Kind::print_end) || tokens_.is(Token::Kind::tag_end)) return true;
  return tokens_.is_symbol(")") || (!end_name.empty() && tokens_.is_name(end_name));
}

ExpressionPtr ExpressionParser::parse_items(bool with_conditional, std::string_view end_name) {
  const uint32_t position = tokens_.current().position;
  ast::TupleLiteral tuple;
  bool has_comma = false;
  while (!at_tuple_end(end_name)) {
    tuple.items.push_back(with_conditional ? parse_conditional() : parse_or());
    if (!tokens_.skip_symbol(",")) break;
    has_comma = true;
  }
  if (tuple.items.empty())
    tokens_.fail("expected an expression, got " + describe(tokens_.current()));
  if (!has_comma) return std::move(tuple.items[0]);
  const int depth = depth_of(tuple.items);
  return make(std::move(tuple), position, depth);
}

}  // namespace forge::templating
