#include "core/data/tasks/grammar.h"

#include <set>

#include "tests/core/data/tasks/published.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

std::string error_in(const std::string& json) {
  return tests::error_of([&] { Grammar::parse(json, "g.json"); });
}

TEST_CASE("a grammar file is read into levels and written again") {
  const std::string json = R"({"6":[[5,4],[5]],"5":[[1,2],[2]],"4":[[3]]})";
  const Grammar grammar = Grammar::parse(json, "g.json");
  REQUIRE(grammar.to_json() == json);
  REQUIRE(grammar.terminals() == 3);
  REQUIRE(grammar.symbols().size() == 6);
  REQUIRE(grammar.root() == 5);
  REQUIRE(grammar.symbols()[5].level == 2);
  REQUIRE(grammar.find(4) == 3);
  REQUIRE(grammar.find(7) == -1);
  REQUIRE(grammar.min_length(5) == 1);
  REQUIRE(grammar.max_length(5) == 3);
  // Two choices of the root and of 5 each; mean length 1.5 + 0.5.
  REQUIRE(grammar.nats_per_terminal() == Approx(2 * std::log(2) / 2));
}

TEST_CASE("what is no grammar in levels is refused with the reason") {
  REQUIRE(error_in("").find("g.json: not JSON") != std::string::npos);
  REQUIRE(error_in("[]").find("not an object") != std::string::npos);
  REQUIRE(error_in("{}").find("not an object") != std::string::npos);
  REQUIRE(error_in(R"({"x":[[1]]})").find("symbol 'x' is not a number") != std::string::npos);
  REQUIRE(error_in(R"({"99999999":[[1]]})").find("is not a number below") != std::string::npos);
  REQUIRE(error_in(R"({"4":[]})").find("symbol 4 has no rules") != std::string::npos);
  REQUIRE(error_in(R"({"4":3})").find("symbol 4 has no rules") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[1]],"04":[[1]]})").find("comes twice") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[]]})").find("is not a list of symbols") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[1,-2]]})").find("names -2") != std::string::npos);
  REQUIRE(error_in(R"({"4":[["1"]]})").find("names \"1\"") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[1.5]]})").find("names 1.5") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[4]]})").find("no terminals") != std::string::npos);
  REQUIRE(error_in(R"({"4":[[4,1]]})").find("symbol 4 is in no level") != std::string::npos);
  REQUIRE(error_in(R"({"5":[[4,1]],"4":[[1]]})").find("symbol 5 is in no level") !=
          std::string::npos);
  REQUIRE(error_in(R"({"5":[[1]],"4":[[1]]})").find("symbol 4 is in no rule") != std::string::npos);
  REQUIRE(error_in(R"({"5":[[2,3]]})").find("terminal 2 where 1 is missing") != std::string::npos);
}

TEST_CASE("a grammar of too long sentences is refused") {
  std::string json = "{\"100\": [[1,1]]";
  for (int symbol = 101; symbol < 140; ++symbol) {
    const std::string below = std::to_string(symbol - 1);
    json += ", \"" + std::to_string(symbol) + "\": [[" + below + "," + below + "]]";
  }
  REQUIRE(error_in(json + "}").find("a million terminals") != std::string::npos);
}

TEST_CASE("a grammar can be drawn that is like the published ones") {
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Grammar grammar = Grammar::draw({}, seed);
    REQUIRE(grammar.terminals() == 3);
    REQUIRE(grammar.symbols().size() == 3 + 6 * 3 + 1);
    std::set<Grammar::Rule> rules;
    std::set<int> used;
    size_t count = 0;
    for (const Grammar::Symbol& symbol : grammar.symbols()) {
      if (symbol.level == 0) continue;
      REQUIRE((symbol.rules.size() == 3 || symbol.rules.size() == 4));
      for (const Grammar::Rule& rule : symbol.rules) {
        REQUIRE((rule.size() == 2 || rule.size() == 3));
        rules.insert(rule);
        used.insert(rule.begin(), rule.end());
        ++count;
      }
    }
    REQUIRE(rules.size() == count);
    REQUIRE(used.size() == grammar.symbols().size() - 1);
    // It is one that can be read.
    REQUIRE(Grammar::parse(grammar.to_json(), "drawn").to_json() == grammar.to_json());
    drawn.insert(grammar.to_json());
  }
  REQUIRE(drawn.size() == 20);
  REQUIRE(Grammar::draw({}, 3).to_json() == Grammar::draw({}, 3).to_json());
}

TEST_CASE("a grammar's shape is refused with what would be right") {
  const auto error = [](const GrammarShape& shape) {
    return tests::error_of([&] { Grammar::draw(shape, 1); });
  };
  GrammarShape shape;
  shape.levels = 0;
  REQUIRE(error(shape).find("levels must be 1") != std::string::npos);
  shape = {};
  shape.max_rules = 2;
  REQUIRE(error(shape).find("max_rules must be 3") != std::string::npos);
  shape = {};
  shape.symbols_per_level = 1;  // 2 rules of a lone symbol below: there are no 3 distinct ones
  REQUIRE(error(shape).find("no grammar of this shape") != std::string::npos);
  shape = {};
  shape.levels = 12;
  shape.min_rule_length = shape.max_rule_length = 8;
  REQUIRE(error(shape).find("lower levels") != std::string::npos);
}

}  // namespace
}  // namespace forge::data::tasks
