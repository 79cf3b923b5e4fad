#include "core/results/tables/expression.h"

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tables {
namespace {

using tests::contains;
using tests::error_of;

std::optional<double> metric(const Name& name) {
  static const std::map<std::string, double> metrics = {
      {"tokens_per_second", 900},
      {"baseline.tokens_per_second", 1000},
      {"eval_loss", 2},
      {"eval_loss[copy/rope_1l-16d]", 3},
      {"answer_accuracy.hop_8", 0.25},
      {"zero", 0},
      {"diverged", std::nan("")},
  };
  const auto found = metrics.find(text_of(name));
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

std::optional<double> value_of(const std::string& text) {
  return evaluate(parse_expression(text), metric);
}

std::string complaint_about(const std::string& text) {
  return error_of([&] { parse_expression(text); });
}

TEST_CASE("arithmetic binds as everywhere", "[expression]") {
  REQUIRE(value_of("1 + 2*3") == 7);
  REQUIRE(value_of("(1 + 2)*3") == 9);
  REQUIRE(value_of("7 - 2 - 1") == 4);
  REQUIRE(value_of("12/3/2") == 2);
  REQUIRE(value_of("2^3^2") == 512);
  REQUIRE(value_of("-2^2") == -4);
  REQUIRE(value_of("2^-1") == 0.5);
  REQUIRE(value_of("--2") == 2);
  REQUIRE(value_of("2*-3") == -6);
  REQUIRE(value_of(" 1+\t2 ") == 3);
  REQUIRE(value_of(".5 + 2. + 1e2 + 1E-2 + 2e+1") == 122.51);
}

TEST_CASE("functions", "[expression]") {
  REQUIRE(value_of("abs(-3)") == 3);
  REQUIRE(value_of("min(3, 1, 2)") == 1);
  REQUIRE(value_of("max(3, 1, 2) + 1") == 4);
  REQUIRE(value_of("sqrt(16)") == 4);
  REQUIRE(*value_of("log(exp(2))") == Approx(2).epsilon(1e-15));
  REQUIRE(value_of("max(min(1, 2), abs(-5))") == 5);
}

TEST_CASE("names are metrics of rows", "[expression]") {
  REQUIRE(*value_of("100*(tokens_per_second/baseline.tokens_per_second - 1)") == Approx(-10));
  REQUIRE(value_of("eval_loss[copy/rope_1l-16d] - eval_loss") == 1);
  REQUIRE(value_of("eval_loss[ copy/rope_1l-16d ]") == 3);
  REQUIRE(value_of("answer_accuracy.hop_8*4") == 1);

  const std::vector<Name> names =
      names_of(parse_expression("a + baseline.a*b.c_2[x/y] - a + baseline.a"));
  REQUIRE(names == std::vector<Name>{
                       {"a"}, {"a", Name::Row::baseline}, {"b.c_2", Name::Row::of_config, "x/y"}});
  REQUIRE(names_of(difference_of(parse_comparison("a[x] < b[y] + a[x]"))).size() == 2);
}

TEST_CASE("what has no value gives none", "[expression]") {
  for (const char* text : {"1/0",
                           "1/zero",
                           "zero/zero",
                           "log(0)",
                           "log(-1)",
                           "sqrt(-1)",
                           "(-8)^(1/3)",
                           "exp(1000)",
                           "10^400",
                           "missing",
                           "missing*0",
                           "max(1, missing)",
                           "diverged",
                           "max(1, diverged)",
                           "0*(1/0)"}) {
    CAPTURE(text);
    REQUIRE_FALSE(value_of(text));
  }
  REQUIRE(value_of("0/1") == 0);
}

TEST_CASE("a comparison has two sides", "[expression]") {
  const Comparison comparison = parse_comparison("eval_loss[a] - 1 <= 2*eval_loss[b]");
  REQUIRE(comparison.relation == Relation::at_most);
  const auto value = [](const Name& name) { return name.config == "a" ? 5.0 : 1.5; };
  const Expression both = difference_of(comparison);
  std::vector<double> values;
  for (const Name& name : names_of(both)) values.push_back(value(name));
  CHECK(NumberedExpression(both).at(values) == evaluate(both, value));
  values.pop_back();
  CHECK_FALSE(NumberedExpression(both).at(values));
  REQUIRE(evaluate(comparison.left, value) == 4);
  REQUIRE(evaluate(comparison.right, value) == 3);
  REQUIRE(evaluate(difference_of(comparison), value) == 1);
  for (const auto& [text, relation] : {std::pair("a < 1", Relation::less),
                                       {"a <= 1", Relation::at_most},
                                       {"a>1", Relation::greater},
                                       {"a>=1", Relation::at_least}}) {
    REQUIRE(parse_comparison(text).relation == relation);
    REQUIRE(contains(text, text_of(relation)));
  }
}

TEST_CASE("names that cancel leave a constant", "[expression]") {
  for (const char* text : {"3",
                           "a - a",
                           "a - (a - 0.05)",
                           "0.1*a + 0.2*a - 0.3*a",
                           "100*(1 - a/a)",
                           "a/(2*a)",
                           "(a*b + b*b)/b - a - b",
                           "a^2/a - a",
                           "log(a/b) - log(a/b)",
                           "(a - b)^0"}) {
    CAPTURE(text);
    CHECK(is_constant(parse_expression(text)));
  }
  for (const char* text : {"a",
                           "a - b",
                           "a - baseline.a",
                           "a[x] - a[y]",
                           "a/b",
                           "0.95*a - a",
                           "(a^2)^0.5 - a",
                           "log(a/b) - log(b/a)",
                           "exp(-1000000*(a - b)^2)",
                           "1/(a - b)"}) {
    CAPTURE(text);
    CHECK_FALSE(is_constant(parse_expression(text)));
  }
}

TEST_CASE("errors stand at their column", "[expression]") {
  const std::string error = [] {
    try {
      parse_expression("eval_loss*(1 + 2");
    } catch (const Error& thrown) {
      return describe(thrown);
    }
    return std::string();
  }();
  REQUIRE(error ==
          "expression:1:11: error: '(' is never closed\n"
          "    eval_loss*(1 + 2\n"
          "              ^");
}

TEST_CASE("errors name what is wrong", "[expression]") {
  for (const auto& [text, message] :
       {std::pair("", "expected a number, a name or '(', and the text ends"),
        {"1 +", "expected a number, a name or '(', and the text ends"},
        {"1 + * 2", "expected a number, a name or '('"},
        {"2 eval_loss", "expected an operator"},
        {"(1))", "')' closes nothing"},
        {"()", "expected a number, a name or '('"},
        {"2.5.1", "'2.5.' is no number"},
        {"3x", "'3x' is no number"},
        {"1e999", "the number is too large"},
        {"log", "'log' is a function"},
        {"abs(1, 2)", "'abs' takes one argument, not 2"},
        {"max(1)", "'max' takes 2 to 20 arguments, not 1"},
        {"baseline", "'baseline' is a row, not a metric"},
        {"baseline.a[x]", "'baseline.a' is of the baseline already"},
        {"a[x", "'[' is never closed"},
        {"a[ ]", "no config between '[' and ']'"},
        {"a < b", "'<' compares, and this is no claim"},
        {"(a < b)", "a comparison stands between two sides, not in parentheses"},
        {"a.", "expected an operator"},
        {"2**3", "there is no operator '**'"}}) {
    CAPTURE(text);
    REQUIRE(contains(complaint_about(text), message));
  }
}

TEST_CASE("hints say what would be right", "[expression]") {
  for (const auto& [text, hint] : {std::pair("sqr(2)", "did you mean 'sqrt'?"),
                                   {"median(2)", "functions are abs, exp, log, max, min, sqrt"},
                                   {"a − b", "write a minus as '-'"},
                                   {"2×3", "write a product with '*'"},
                                   {"a = b", "one of < <= > >="},
                                   {"a*5%", "write 2 % as 0.02"},
                                   {"a['x']", "stands without quotes"},
                                   {"2**3", "write a power with '^'"},
                                   {"baseline", "e.g. baseline.eval_loss"}}) {
    CAPTURE(text);
    try {
      parse_expression(text);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      REQUIRE(contains(error.hint(), hint));
    }
  }
}

TEST_CASE("a claim has one comparison and a metric", "[expression]") {
  const auto complaint = [](const std::string& text) {
    return error_of([&] { parse_comparison(text); });
  };
  REQUIRE(contains(complaint("a + b"), "a claim compares two sides"));
  REQUIRE(contains(complaint("1 < a < 2"), "a claim has one comparison"));
  REQUIRE(contains(complaint("1 < 2"), "the claim names no metric"));
  REQUIRE(contains(complaint("a < "), "and the text ends"));
  REQUIRE(contains(complaint("a == b"), "expected an operator"));
}

TEST_CASE("names must be known", "[expression]") {
  const std::vector<std::string> metrics = {"eval_loss", "tokens_per_second"};
  const std::vector<std::string> configs = {"train_llama", "train_canon"};
  const auto hint = [&](const std::string& text) {
    try {
      check_names(parse_expression(text), metrics, configs);
    } catch (const Error& error) {
      return describe(error);
    }
    return std::string();
  };
  REQUIRE(hint("eval_loss + baseline.tokens_per_second - eval_loss[train_canon]").empty());
  REQUIRE(contains(hint("1 + evl_loss"), "expression:1:5: error: there is no metric 'evl_loss'"));
  REQUIRE(contains(hint("1 + evl_loss"), "did you mean 'eval_loss'?"));
  REQUIRE(contains(hint("baseline.xyz"), "metrics are eval_loss, tokens_per_second"));
  REQUIRE(contains(hint("eval_loss[train_lama]"), "'train_lama' has no row in this table"));
  REQUIRE(contains(hint("eval_loss[train_lama]"), "did you mean 'train_llama'?"));
  REQUIRE(contains(error_of([&] {
                     check_names(
                         difference_of(parse_comparison("eval_loss < speed")), metrics, configs);
                   }),
                   "there is no metric 'speed'"));
}

TEST_CASE("in a file the caret stands under the byte itself", "[expression]") {
  auto source = std::make_shared<SourceText>();
  source->name = "t.yaml";
  source->text = "columns:\n  - {value: \"1 + loss)\"}\n  - value: >\n      2 +\n      loss)\n";
  const auto complaint = [&](const std::string& text, int line, int column) {
    try {
      parse_expression(text, make_span(source, line, column));
    } catch (const Error& error) {
      return describe(error);
    }
    return std::string();
  };
  REQUIRE(contains(complaint("1 + loss)", 2, 13), "t.yaml:2:22: error: ')' closes nothing"));
  // A folded text is not in the file as it is parsed.
  const std::string folded = complaint("2 + loss)", 3, 12);
  REQUIRE(contains(folded, "t.yaml:3:12: error: ')' closes nothing"));
  REQUIRE(contains(folded, "(column 9 of '2 + loss)')"));
}

TEST_CASE("expressions are limited in every direction", "[expression]") {
  const auto repeated = [](const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  REQUIRE(contains(complaint_about(repeated("(", 1500) + "1" + repeated(")", 400)),
                   "nested too deeply"));
  REQUIRE(contains(complaint_about(repeated("-", 1500) + "1"), "nested too deeply"));
  REQUIRE(contains(complaint_about(repeated("2^", 800) + "1"), "nested too deeply"));
  REQUIRE(contains(complaint_about(repeated("abs(", 400)), "nested too deeply"));
  REQUIRE(contains(complaint_about(repeated("1+", 900) + "1"), "too many operations"));
  REQUIRE(contains(complaint_about(repeated(" ", 3000)), "at most 2000 characters"));
  REQUIRE(value_of(repeated("(", 40) + "1" + repeated(")", 40)) == 1);
  REQUIRE(value_of(repeated("1+", 200) + "1") == 201);
}

TEST_CASE("rubbish is refused, never evaluated wrongly", "[expression]") {
  const std::string letters = "ab.[]()+-*/^<>=, 129eE_\"'\xc3\xa9\n%";
  RandomStream random(7, 1);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const uint64_t length = random.below(12);
    for (uint64_t k = 0; k < length; ++k) text += letters[random.below(letters.size())];
    text += std::string(random.below(40) == 0 ? 1 : 0, '\0');
    CAPTURE(text);
    try {
      const Expression expression = parse_expression(text);
      ++parsed;
      REQUIRE(!expression.steps.empty());
      // One value is left whatever the names are: each operation found its operands.
      const auto one = [](const Name&) { return 1.0; };
      const auto two = [](const Name&) { return 2.0; };
      (void)evaluate(expression, one);
      (void)evaluate(expression, two);
    } catch (const Error& error) {
      REQUIRE(!error.message().empty());
    }
  }
  REQUIRE(parsed > 300);
}

}  // namespace
}  // namespace forge::tables
