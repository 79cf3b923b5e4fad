#include "core/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/jinja/builtins.h"
#include "core/python/plain_scalar.h"

namespace forge::jinja {

using ast::ExpressionPtr;

namespace {

/// Deeper trees are refused, so that walking (and freeing) one never exhausts the stack.
constexpr int max_depth = 200;

template <typename Node>
ExpressionPtr make(Node node, uint32_t position) {
  auto expression = std::make_unique<ast::Expression>();
  expression->node = std::move(node);
  expression->position = position;
  int depth = 0;
  ast::for_each_operand(*expression, [&](const ExpressionPtr& operand) {
    if (operand) depth = std::max(depth, operand->depth);
  });
  if (depth >= max_depth)
    throw SyntaxError("this expression is nested too deeply", position, "split it with {% set %}");
  expression->depth = depth + 1;
  return expression;
}

/// Which of the operators a token is, or nothing.
template <typename Operator>
std::optional<Operator> find_operator(
    const Token& token, std::initializer_list<std::pair<std::string_view, Operator>> operators) {
  if (token.kind != Token::Kind::symbol) return std::nullopt;
  for (const auto& [symbol, operation] : operators) {
    if (token.text == symbol) return operation;
  }
  return std::nullopt;
}

}  // namespace

/// Bounds the parser's own recursion.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > max_depth) {
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

std::vector<NameUses*> ExpressionParser::swap_trackers(std::vector<NameUses*> trackers) {
  return std::exchange(trackers_, std::move(trackers));
}

void ExpressionParser::note_use(const std::string& name) {
  for (NameUses* uses : trackers_) uses->insert(name);
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

void ExpressionParser::note_unknown(const std::string& kind,
                                    const std::string& name,
                                    const std::vector<std::string>& known,
                                    uint32_t position) {
  if (conditional_depth > 0 || unknown_) return;
  unknown_.emplace("there is no " + kind + " '" + name + "'", position, did_you_mean(name, known));
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
    value =
        make(ast::Conditional{std::move(test), std::move(value), std::move(otherwise)}, position);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_logical(bool is_and, Ptr (ExpressionParser::*operand)()) {
  ExpressionPtr left = (this->*operand)();
  while (tokens_.is_name(is_and ? "and" : "or")) {
    const uint32_t position = tokens_.take().position;
    left = make(ast::Logical{is_and, std::move(left), (this->*operand)()}, position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_or() {
  return parse_logical(false, &ExpressionParser::parse_and);
}

ExpressionPtr ExpressionParser::parse_and() {
  return parse_logical(true, &ExpressionParser::parse_not);
}

/// Operands with operators of one rank between them, grouped from the left.
ExpressionPtr ExpressionParser::parse_binary(Ptr (ExpressionParser::*operand)(),
                                             Operators<BinaryOperator> operators) {
  ExpressionPtr left = (this->*operand)();
  while (const auto operation = find_operator(tokens_.current(), operators)) {
    const uint32_t position = tokens_.take().position;
    left = make(ast::Binary{*operation, std::move(left), (this->*operand)()}, position);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.is_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  const uint32_t position = tokens_.take().position;
  ExpressionPtr operand = parse_not();
  return make(ast::Unary{ast::Unary::Operator::logical_not, std::move(operand)}, position);
}

ExpressionPtr ExpressionParser::parse_comparison() {
  const uint32_t position = tokens_.current().position;
  ast::ComparisonChain chain;
  chain.first = parse_sum();
  while (true) {
    auto comparison = find_operator<Comparison>(tokens_.current(),
                                                {{"==", Comparison::equal},
                                                 {"!=", Comparison::not_equal},
                                                 {"<", Comparison::less},
                                                 {"<=", Comparison::less_equal},
                                                 {">", Comparison::greater},
                                                 {">=", Comparison::greater_equal}});
    if (tokens_.is_name("in")) comparison = Comparison::in;
    if (tokens_.is_name("not") && TokenStream::is(tokens_.following(), Token::Kind::name, "in")) {
      tokens_.take();
      comparison = Comparison::not_in;
    }
    if (!comparison) break;
    tokens_.take();
    chain.rest.emplace_back(*comparison, parse_sum());
  }
  if (chain.rest.empty()) return std::move(chain.first);
  return make(std::move(chain), position);
}

ExpressionPtr ExpressionParser::parse_sum() {
  return parse_binary(&ExpressionParser::parse_concatenation,
                      {{"+", BinaryOperator::add}, {"-", BinaryOperator::subtract}});
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  const uint32_t position = tokens_.current().position;
  ast::Concatenation concatenation;
  concatenation.parts.push_back(parse_product());
  while (tokens_.skip_symbol("~")) concatenation.parts.push_back(parse_product());
  if (concatenation.parts.size() == 1) return std::move(concatenation.parts[0]);
  return make(std::move(concatenation), position);
}

ExpressionPtr ExpressionParser::parse_product() {
  return parse_binary(&ExpressionParser::parse_power,
                      {{"*", BinaryOperator::multiply},
                       {"/", BinaryOperator::divide},
                       {"//", BinaryOperator::floor_divide},
                       {"%", BinaryOperator::modulo}});
}

ExpressionPtr ExpressionParser::parse_power() {
  return parse_binary(&ExpressionParser::parse_operand, {{"**", BinaryOperator::power}});
}

ExpressionPtr ExpressionParser::parse_operand() { return parse_unary(true); }

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  ExpressionPtr expression;
  if (tokens_.is_symbol("-") || tokens_.is_symbol("+")) {
    const Token token = tokens_.take();
    ExpressionPtr operand = parse_unary(false);
    const auto operation =
        token.text == "-" ? ast::Unary::Operator::minus : ast::Unary::Operator::plus;
    expression = make(ast::Unary{operation, std::move(operand)}, token.position);
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
  note_use(name);
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
  if (token.kind == Token::Kind::real)
    return make(ast::Constant{Value::real(read_decimal(digits))}, token.position);
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

/// Items with commas between them, and perhaps one behind the last, up to a closing bracket.
template <typename ParseItem>
void ExpressionParser::parse_until(std::string_view close, const ParseItem& parse_item) {
  while (!tokens_.skip_symbol(close)) {
    parse_item();
    if (!tokens_.is_symbol(close)) tokens_.expect_symbol(",");
  }
}

ExpressionPtr ExpressionParser::parse_list() {
  ast::ListLiteral list;
  const uint32_t position = tokens_.take().position;
  parse_until("]", [&] { list.items.push_back(parse_conditional()); });
  return make(std::move(list), position);
}

ExpressionPtr ExpressionParser::parse_dict() {
  ast::DictLiteral dict;
  const uint32_t position = tokens_.take().position;
  parse_until("}", [&] {
    ExpressionPtr key = parse_conditional();
    tokens_.expect_symbol(":");
    dict.entries.emplace_back(std::move(key), parse_conditional());
  });
  return make(std::move(dict), position);
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
  return make(std::move(tuple), position);
}

// What may follow an operand: attributes, subscripts, calls, filters, tests.

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
  if (tokens_.is(Token::Kind::integer)) {
    ExpressionPtr key = parse_number();
    return make(ast::Subscript{std::move(object), std::move(key)}, position);
  }
  const Token name = tokens_.expect(Token::Kind::name, "the name of an attribute");
  return make(ast::Attribute{std::move(object), std::string(name.text)}, name.position);
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
      const bool single = keys.items.size() == 1;
      ExpressionPtr key = single ? std::move(keys.items[0]) : make(std::move(keys), position);
      return make(ast::Subscript{std::move(object), std::move(key)}, position);
    }
    if (keys.items.size() != 1) tokens_.fail("unexpected ':' in a subscript");
    slice.begin = std::move(keys.items[0]);
  }
  tokens_.expect_symbol(":");
  slice.end = part();
  if (tokens_.skip_symbol(":")) slice.step = part();
  tokens_.expect_symbol("]");
  slice.object = std::move(object);
  return make(std::move(slice), position);
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  const uint32_t position = callee->position;
  ast::CallArguments arguments = parse_arguments();
  return make(ast::Call{std::move(callee), std::move(arguments)}, position);
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
  if (!find_filter(filter.name)) note_unknown("filter", filter.name, filter_names(), position);
  if (tokens_.is_symbol("(")) filter.arguments = parse_arguments();
  filter.input = std::move(input);
  return make(std::move(filter), position);
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  tokens_.take();
  const bool negated = tokens_.skip_name("not");
  const uint32_t position = tokens_.current().position;
  ast::Test test;
  test.name = parse_dotted_name();
  if (!find_test(test.name)) note_unknown("test", test.name, test_names(), position);
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
  test.input = std::move(input);
  ExpressionPtr expression = make(std::move(test), position);
  if (!negated) return expression;
  return make(ast::Unary{ast::Unary::Operator::logical_not, std::move(expression)}, position);
}

ast::CallArguments ExpressionParser::parse_arguments() {
  const Nesting nesting(*this);
  ast::CallArguments arguments;
  tokens_.expect_symbol("(");
  parse_until(")", [&] { parse_argument(arguments); });
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

}  // namespace forge::jinja
