#include <set>

#include "core/base/error.h"
#include "core/data/tasks/grammar.h"
#include "core/data/tasks/support.h"

namespace forge::data::tasks {
namespace {

constexpr int most_attempts = 1000;  // at a level
constexpr int most_repeats = 200;    // of rules that were drawn before, within an attempt

void check(const GrammarShape& shape) {
  check_range("levels", shape.levels, 1, 12);
  check_range("symbols_per_level", shape.symbols_per_level, 1, 32);
  check_range("terminals", shape.terminals, 1, 64);
  check_range("min_rules", shape.min_rules, 1, 32);
  check_range("max_rules", shape.max_rules, shape.min_rules, 32, "at least min_rules");
  check_range("min_rule_length", shape.min_rule_length, 1, 8);
  check_range("max_rule_length",
              shape.max_rule_length,
              shape.min_rule_length,
              8,
              "at least min_rule_length");
}

/// Rules of a level's symbols over the symbols below … above-1, all distinct; nothing where the
/// draw repeats itself too often or leaves a symbol unused.
std::vector<std::vector<Grammar::Rule>> draw_level(
    const GrammarShape& shape, int symbols, int below, int above, RandomStream& random) {
  const auto between = [&random](int least, int most) {
    return least + static_cast<int>(random.below(most - least + 1));
  };
  std::vector<std::vector<Grammar::Rule>> level(symbols);
  std::set<Grammar::Rule> seen;
  std::set<int> used;
  int repeats = 0;
  for (std::vector<Grammar::Rule>& rules : level) {
    const size_t count = between(shape.min_rules, shape.max_rules);
    while (rules.size() < count) {
      Grammar::Rule rule(between(shape.min_rule_length, shape.max_rule_length));
      for (int& part : rule) part = between(below, above - 1);
      if (!seen.insert(rule).second) {
        if (++repeats == most_repeats) return {};
        continue;
      }
      used.insert(rule.begin(), rule.end());
      rules.push_back(std::move(rule));
    }
  }
  if (used.size() != static_cast<size_t>(above - below)) return {};
  return level;
}

}  // namespace

Grammar Grammar::draw(const GrammarShape& shape, uint64_t seed) {
  check(shape);
  RandomStream random(seed, stream_number("lano grammar"));
  std::vector<Symbol> symbols;
  for (int i = 0; i < shape.terminals; ++i) symbols.push_back({i + 1, 0, {}});
  int below = 0;  // first symbol of the level below
  for (int level = 1; level <= shape.levels; ++level) {
    const int begin = static_cast<int>(symbols.size());
    const int count = level == shape.levels ? 1 : shape.symbols_per_level;
    std::vector<std::vector<Rule>> drawn;
    for (int attempt = 0; drawn.empty() && attempt < most_attempts; ++attempt) {
      drawn = draw_level(shape, count, below, begin, random);
    }
    if (drawn.empty()) {
      throw Error("no grammar of this shape was found",
                  {},
                  "more or longer rules make every symbol of a level used, and distinct rules "
                  "possible");
    }
    for (std::vector<Rule>& rules : drawn) {
      symbols.push_back({static_cast<int>(symbols.size()) + 1, level, std::move(rules)});
    }
    below = begin;
  }
  Grammar grammar(std::move(symbols));
  if (grammar.max_length(grammar.root()) >= greatest_sentence) {
    throw Error("a grammar of this shape may have sentences of a million terminals",
                {},
                "lower levels or max_rule_length");
  }
  return grammar;
}

}  // namespace forge::data::tasks
