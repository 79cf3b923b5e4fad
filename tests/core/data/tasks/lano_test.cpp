#include <cmath>
#include <map>
#include <set>

#include "core/data/tasks/grammar.h"
#include "core/data/tasks/lano.h"
#include "tests/core/data/tasks/published.h"
#include "tests/core/data/tasks/validators.h"
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
  REQUIRE(published::find_symbol(grammar, 4) == 3);
  REQUIRE(published::find_symbol(grammar, 7) == -1);
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

using Language = std::map<std::vector<int32_t>, double>;

Grammar small_grammar() {
  return Grammar::parse(
      R"({"9": [[7, 8], [8, 7, 7], [8, 8]], "8": [[4, 5], [6]], "7": [[5, 4], [6, 6]],
          "6": [[1, 2], [3]], "5": [[2], [2, 3]], "4": [[1], [1, 2], [3, 3]]})",
      "small");
}

/// All that a symbol becomes, with probabilities: every derivation written out.
Language language_of(const Grammar& grammar, int symbol) {
  if (symbol < grammar.terminals()) return {{{symbol + 1}, 1.0}};
  const auto& rules = grammar.symbols()[symbol].rules;
  Language all;
  for (const Grammar::Rule& rule : rules) {
    Language strings = {{{}, 1.0 / static_cast<double>(rules.size())}};
    for (const int part : rule) {
      Language longer;
      for (const auto& [left, p] : strings) {
        for (const auto& [right, q] : language_of(grammar, part)) {
          std::vector<int32_t> both = left;
          both.insert(both.end(), right.begin(), right.end());
          longer[both] += p * q;
        }
      }
      strings = std::move(longer);
    }
    for (const auto& [string, p] : strings) all[string] += p;
  }
  return all;
}

TEST_CASE("a chart has the probabilities of all sentences and prefixes of a grammar") {
  const Grammar grammar = small_grammar();
  const Language language = language_of(grammar, grammar.root());
  REQUIRE(language.size() > 100);
  double sum = 0;
  for (const auto& [sentence, p] : language) sum += p;
  REQUIRE(sum == Approx(1));
  int checked = 0;
  for (const auto& [sentence, p] : language) {
    const Chart chart(grammar, sentence);
    const int size = static_cast<int>(sentence.size());
    REQUIRE(chart.accepts());
    REQUIRE(chart.probability(grammar.root(), 0, size) == Approx(p).epsilon(1e-12));
    if (++checked % 10 != 0) continue;
    const std::vector<double> truth = chart.next_token_distribution();
    for (size_t at = 0; at <= sentence.size(); ++at) {
      std::vector<double> next(4);
      for (const auto& [other, q] : language) {
        const bool same = other.size() >= at &&
                          std::equal(sentence.begin(), sentence.begin() + at, other.begin());
        if (same) next[other.size() == at ? 0 : other[at]] += q;
      }
      const double all = next[0] + next[1] + next[2] + next[3];
      for (size_t t = 0; t < 4; ++t) {
        REQUIRE(truth[4 * at + t] == Approx(next[t] / all).epsilon(1e-12).margin(1e-15));
      }
    }
  }
}

TEST_CASE("Lano's validator accepts of all changes of a token those that are sentences") {
  const Grammar grammar = small_grammar();
  const Lano task({grammar});
  const Language language = language_of(grammar, grammar.root());
  int accepted = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    Instance instance;
    task.generate(1, Split::training, i, instance);
    accepted += check_corruptions(task, instance, [&](const std::vector<int32_t>& text) {
      std::optional<Instance> right;
      if (text[0] == 0 && language.count({text.begin() + 1, text.end()}) != 0) {
        right.emplace().scored.assign(text.size(), 1);
      }
      return right;
    });
  }
  REQUIRE(accepted > 60);
}

TEST_CASE("Lano's validator says where a sentence goes wrong") {
  const Lano task({Grammar::parse(R"({"4": [[1, 2, 3], [1, 3]]})", "g")});
  const auto fault = [&](const std::vector<int32_t>& sentence) {
    const std::optional<Fault> found = find_sentence_fault(task, sentence);
    return found ? std::to_string(found->position) + " " + found->message : "";
  };
  REQUIRE(fault({1, 2, 3}) == "");
  REQUIRE(fault({1, 2, 2}) == "2 no sentence of the grammar goes on with 2 here");
  REQUIRE(fault({1, 3, 3}) == "2 no sentence of the grammar goes on with 3 here");
  REQUIRE(fault({1, 2}) == "2 the sentence is not over here");
  REQUIRE(fault({}) == "0 the sentence is not over here");
  REQUIRE(fault({1, 0, 3}) == "1 not a terminal");
  REQUIRE(fault({1, 9}) == "1 not a terminal");
}

TEST_CASE("Lano scores what was written from bos on up to a bos") {
  const Lano task({Grammar::parse(R"({"4": [[1, 2, 3], [1, 3]]})", "g")});
  REQUIRE(task.eval_mode() == EvalMode::sampled);
  REQUIRE(task.prompt({}).tokens == std::vector<int32_t>{0});
  REQUIRE(task.prompt({}).stop == 0);
  REQUIRE(task.prompt({}).max_new_tokens == 4);
  Scores scores;
  task.score({}, {1, 3, 0}, scores);
  task.score({}, {1, 2, 3}, scores);  // cut
  task.score({}, {1, 1, 3, 0}, scores);
  task.score({}, {}, scores);
  REQUIRE(*scores.mean("sentence_validity") == 0.25);
}

std::vector<std::vector<int32_t>> sentences_of(const Lano& task, uint64_t count) {
  std::vector<std::vector<int32_t>> sentences;
  for (uint64_t i = 0; i < count; ++i) {
    Instance instance;
    task.generate(1, Split::evaluation, i, instance);
    sentences.emplace_back(instance.tokens.begin() + 1, instance.tokens.end());
  }
  return sentences;
}

TEST_CASE("Lano's divergence is none for the truth and that of the formula for others") {
  const Lano task({small_grammar()});
  const GrammarDistribution truth(task, sentences_of(task, 3));
  REQUIRE(truth.sentences() == 3);
  Scores exact;
  std::vector<double> logs;
  for (const double p : truth.of(1)) logs.push_back(std::log(p));
  truth.score(1, logs.data(), static_cast<int64_t>(logs.size()) / 4, exact);
  REQUIRE(*exact.mean("kl_divergence") == Approx(0).margin(1e-7));

  const std::vector<double> uniform(truth.of(1).size(), std::log(0.25));
  double expected = 0;
  for (size_t i = 0; i < 8; ++i) {  // two positions
    const double p = truth.of(1)[i];
    expected += p * (std::log((p + 1e-5) / 1.00004) - std::log((0.25 + 1e-5) / 1.00004)) / 2;
  }
  Scores other;
  truth.score(1, uniform.data(), 2, other);
  REQUIRE(*other.mean("kl_divergence") == Approx(expected).epsilon(1e-5));
  REQUIRE(other.sums().at("kl_divergence").count == 2);
}

TEST_CASE("a long sentence's distributions do not underflow") {
  const Lano task({published::grammar("cfg3j")});
  Instance longest;
  for (uint64_t i = 0; i < 200; ++i) {
    Instance instance;
    task.generate(2, Split::evaluation, i, instance);
    if (instance.tokens.size() > longest.tokens.size()) longest = instance;
  }
  REQUIRE(longest.tokens.size() > 800);
  const std::vector<int32_t> sentence(longest.tokens.begin() + 1, longest.tokens.end());
  const std::vector<double> truth = Chart(task.grammar(), sentence).next_token_distribution();
  for (size_t at = 0; at <= sentence.size(); ++at) {
    REQUIRE(truth[4 * at] + truth[4 * at + 1] + truth[4 * at + 2] + truth[4 * at + 3] == Approx(1));
    REQUIRE(truth[4 * at + (at < sentence.size() ? sentence[at] : 0)] > 1e-9);
  }
}

TEST_CASE("Lano without a grammar is refused") {
  REQUIRE(tests::error_of([] { make_task(LanoConfig{}); }).find("grammar is missing") !=
          std::string::npos);
}

}  // namespace
}  // namespace forge::data::tasks
