#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/results/tables/expression.h"

namespace forge::tables {
namespace {

struct Function {
  Operation operation;
  size_t least;  ///< arguments
  size_t most;
};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"abs", {Operation::absolute, 1, 1}},
      {"exp", {Operation::exponential, 1, 1}},
      {"log", {Operation::logarithm, 1, 1}},
      {"max", {Operation::maximum, 2, 20}},
      {"min", {Operation::minimum, 2, 20}},
      {"sqrt", {Operation::square_root, 1, 1}},
  };
  return table;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : functions()) names.push_back(name);
  return names;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

struct RelationText {
  const char* text;
  Relation relation;
};
// The longer ones first.
constexpr RelationText relations[] = {{"<=", Relation::at_most},
                                      {">=", Relation::at_least},
                                      {"<", Relation::less},
                                      {">", Relation::greater}};

/// Characters that stand in papers for what is written otherwise here.
struct Lookalike {
  const char* text;
  const char* hint;
};
constexpr Lookalike lookalikes[] = {
    {"−", "write a minus as '-'"},
    {"–", "write a minus as '-'"},
    {"×", "write a product with '*'"},
    {"·", "write a product with '*'"},
    {"÷", "write a quotient with '/'"},
    {"≤", "write '<='"},
    {"≥", "write '>='"},
    {"%", "a share is a number: write 2 % as 0.02"},
    {"=", "metrics of runs are never exactly equal: a claim has one of < <= > >="},
    {"'", "the config in brackets stands without quotes, e.g. eval_loss[canon_b]"},
    {"\"", "the config in brackets stands without quotes, e.g. eval_loss[canon_b]"},
    {"[", "brackets follow a metric: eval_loss[canon_b] is that of the row canon_b"},
};

/// Recursive descent over the text. Each function reads what its name says and appends the steps.
class Parser {
 public:
  Parser(const std::string& text, const SourceSpan& where) : text_(text), where_(where) {
    if (text.size() > max_expression_bytes) {
      fail("an expression has at most " + std::to_string(max_expression_bytes) +
               " characters, this one has " + std::to_string(text.size()),
           0);
    }
  }

  Expression whole_expression() {
    Expression expression = side();
    if (const std::optional<Relation> relation = next_relation()) {
      fail(std::string("'") + text_of(*relation) + "' compares, and this is no claim",
           position_ - std::string_view(text_of(*relation)).size(),
           "a column is one value");
    }
    expect_end();
    return expression;
  }

  Comparison whole_comparison() {
    Comparison comparison;
    comparison.left = side();
    const size_t place = position_;
    const std::optional<Relation> relation = next_relation();
    if (!relation) {
      expect_end();
      fail("a claim compares two sides", place, "with one of < <= > >=, e.g. a[x] < a[y]");
    }
    comparison.relation = *relation;
    comparison.right = side();
    skip_spaces();
    const size_t second = position_;
    if (next_relation()) fail("a claim has one comparison", second, "make two claims of it");
    expect_end();
    if (names_of(difference_of(comparison)).empty())
      fail("the claim names no metric", 0, "e.g. eval_loss[x]");
    return comparison;
  }

 private:
  Expression side() {
    steps_.clear();
    sum();
    return {text_, where_, steps_};
  }

  void sum() {
    product();
    while (true) {
      const size_t place = (skip_spaces(), position_);
      if (take('+')) {
        product();
        append(Operation::add, 2, place);
      } else if (take('-')) {
        product();
        append(Operation::subtract, 2, place);
      } else {
        return;
      }
    }
  }

  void product() {
    factor();
    while (true) {
      const size_t place = (skip_spaces(), position_);
      if (take('*')) {
        if (peek() == '*') fail("there is no operator '**'", place, "write a power with '^'");
        factor();
        append(Operation::multiply, 2, place);
      } else if (take('/')) {
        factor();
        append(Operation::divide, 2, place);
      } else {
        return;
      }
    }
  }

  /// -2^2 is -(2^2), 2^-1 is 2^(-1), 2^3^2 is 2^(3^2).
  void factor() {
    const Level level(*this);
    const size_t place = (skip_spaces(), position_);
    if (take('-')) {
      factor();
      append(Operation::negate, 1, place);
      return;
    }
    operand();
    const size_t power = (skip_spaces(), position_);
    if (!take('^')) return;
    factor();
    append(Operation::power, 2, power);
  }

  void operand() {
    skip_spaces();
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (is_word_start(c)) return name_or_call();
    if (!take('(')) fail_at_next("expected a number, a name or '('");
    const size_t opening = position_ - 1;
    sum();
    close(opening);
  }

  void number() {
    const size_t start = position_;
    while (is_digit(peek())) ++position_;
    if (peek() == '.') ++position_;
    while (is_digit(peek())) ++position_;
    if (peek() == 'e' || peek() == 'E') {
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (is_digit(peek(1 + sign))) {
        position_ += 1 + sign;
        while (is_digit(peek())) ++position_;
      }
    }
    if (is_word(peek()) || peek() == '.')
      fail("'" + text_.substr(start, position_ + 1 - start) + "' is no number", start);
    Step step;
    step.number = std::strtod(text_.substr(start, position_ - start).c_str(), nullptr);
    step.offset = start;
    if (!std::isfinite(step.number)) fail("the number is too large", start);
    append(step);
  }

  /// metric, metric.part, baseline.metric, metric[config], function(arguments)
  void name_or_call() {
    const size_t start = position_;
    while (is_word(peek()) || (peek() == '.' && is_word(peek(1)))) ++position_;
    std::string word = text_.substr(start, position_ - start);
    skip_spaces();
    if (peek() == '(') return call(word, start);
    if (functions().count(word) > 0)
      fail("'" + word + "' is a function", start, "e.g. " + word + "(eval_loss)");

    Step step;
    step.operation = Operation::name;
    step.offset = start;
    step.name = {word};
    constexpr std::string_view of_baseline = "baseline.";
    if (word == "baseline")
      fail("'baseline' is a row, not a metric", start, "e.g. baseline.eval_loss");
    if (starts_with(word, of_baseline))
      step.name = {word.substr(of_baseline.size()), Name::Row::baseline};
    if (peek() == '[') {
      if (step.name.row == Name::Row::baseline)
        fail("'" + word + "' is of the baseline already", position_, "leave one of the two out");
      step.name = {word, Name::Row::of_config, config_in_brackets()};
    }
    append(step);
  }

  std::string config_in_brackets() {
    const size_t opening = position_;
    const size_t closing = text_.find(']', opening);
    if (closing == std::string::npos) fail("'[' is never closed", opening);
    const std::string config(
        trim(std::string_view(text_).substr(opening + 1, closing - opening - 1)));
    if (config.empty()) fail("no config between '[' and ']'", opening);
    if (config.find_first_of("'\"[") != std::string::npos)
      fail("'" + config + "' is no name of a config", opening + 1, hint_of("'"));
    position_ = closing + 1;
    return config;
  }

  void call(const std::string& word, size_t start) {
    const auto found = functions().find(word);
    if (found == functions().end()) {
      fail("there is no function '" + word + "'",
           start,
           did_you_mean(word, function_names(), "functions are " + join(function_names(), ", ")));
    }
    const size_t opening = position_++;
    size_t arguments = 0;
    do {
      sum();
      ++arguments;
      skip_spaces();
    } while (take(','));
    close(opening);
    const Function& function = found->second;
    if (arguments < function.least || arguments > function.most) {
      fail("'" + word + "' takes " + counted(function) + ", not " + std::to_string(arguments),
           start);
    }
    append(function.operation, arguments, start);
  }

  static std::string counted(const Function& function) {
    return function.most == 1 ? "one argument"
                              : std::to_string(function.least) + " to " +
                                    std::to_string(function.most) + " arguments";
  }

  void close(size_t opening) {
    skip_spaces();
    if (take(')')) return;
    if (position_ == text_.size()) fail("'(' is never closed", opening);
    const size_t place = position_;
    if (next_relation()) fail("a comparison stands between two sides, not in parentheses", place);
    fail_at_next("expected an operator or ')'");
  }

  void expect_end() {
    skip_spaces();
    if (position_ == text_.size()) return;
    if (peek() == ')') fail("')' closes nothing", position_);
    fail_at_next("expected an operator");
  }

  std::optional<Relation> next_relation() {
    skip_spaces();
    for (const RelationText& known : relations) {
      const std::string_view text = known.text;
      if (text_.compare(position_, text.size(), text) != 0) continue;
      position_ += text.size();
      return known.relation;
    }
    return std::nullopt;
  }

  void append(Operation operation, size_t arguments, size_t offset) {
    Step step;
    step.operation = operation;
    step.arguments = arguments;
    step.offset = offset;
    append(step);
  }
  void append(const Step& step) {
    steps_.push_back(step);
    if (++count_ > max_expression_steps)
      fail("the expression has too many operations", step.offset);
  }

  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool take(char c) {
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void skip_spaces() {
    while (position_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\n'))
      ++position_;
  }

  std::string hint_of(std::string_view rest) const {
    for (const Lookalike& known : lookalikes)
      if (starts_with(rest, known.text)) return known.hint;
    return "";
  }

  [[noreturn]] void fail(const std::string& message, size_t offset, const std::string& hint = "") {
    throw expression_error(message, text_, offset, where_, hint);
  }
  [[noreturn]] void fail_at_next(const std::string& expected) {
    if (position_ >= text_.size()) fail(expected + ", and the text ends", text_.size());
    fail(expected, position_, hint_of(std::string_view(text_).substr(position_)));
  }

  /// Counts nesting, so that no text can use up the stack: all recursion goes through factor.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > max_expression_depth)
        parser_.fail("the expression is nested too deeply", parser_.position_);
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  const std::string text_;
  const SourceSpan where_;
  size_t position_ = 0;
  int depth_ = 0;
  size_t count_ = 0;  ///< steps of both sides
  std::vector<Step> steps_;
};

}  // namespace

Expression parse_expression(const std::string& text, const SourceSpan& where) {
  return Parser(text, where).whole_expression();
}

Comparison parse_comparison(const std::string& text, const SourceSpan& where) {
  return Parser(text, where).whole_comparison();
}

}  // namespace forge::tables
