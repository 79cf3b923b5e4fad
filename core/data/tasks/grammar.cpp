#include "core/data/tasks/grammar.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {
namespace {

constexpr size_t most_symbols = 1000;
constexpr size_t most_rule_symbols = 100000;

using RulesByName = std::map<int, std::vector<std::vector<int>>>;

Error bad(const std::string& source, const std::string& what, const std::string& hint = "") {
  return Error(source + ": " + what, hint);
}

/// The object's names and rules.
RulesByName read_rules(std::string_view json, const std::string& source) {
  const nlohmann::json tree = read_json_text(json);
  const std::string hint = "a grammar is written as {\"5\": [[4, 4], [4]], \"4\": [[1, 2]]}";
  if (tree.is_discarded()) throw bad(source, "not JSON", hint);
  if (!tree.is_object() || tree.empty()) throw bad(source, "not an object of symbols", hint);
  RulesByName rules;
  size_t total = 0;
  for (const auto& [key, list] : tree.items()) {
    const bool digits =
        !key.empty() && key.size() <= 6 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) throw bad(source, "symbol '" + key + "' is not a number below 1,000,000", hint);
    if (!list.is_array() || list.empty())
      throw bad(source, "symbol " + key + " has no rules", hint);
    const auto [found, added] = rules.try_emplace(std::stoi(key));
    if (!added) throw bad(source, "symbol " + key + " comes twice", hint);
    for (const nlohmann::json& rule : list) {
      if (!rule.is_array() || rule.empty()) {
        throw bad(source, "a rule of symbol " + key + " is not a list of symbols", hint);
      }
      total += rule.size();
      if (total > most_rule_symbols) throw bad(source, "too many rules");
      found->second.emplace_back();
      for (const nlohmann::json& symbol : rule) {
        if (!symbol.is_number_integer() || symbol < 1 || symbol > 999999) {
          throw bad(source, "a rule of symbol " + key + " names " + json_text(symbol), hint);
        }
        found->second.back().push_back(symbol.get<int>());
      }
    }
  }
  return rules;
}

/// Level of each symbol: one more than that of all symbols in its rules, 0 without rules.
std::map<int, int> find_levels(const RulesByName& rules, const std::string& source) {
  std::map<int, int> levels;
  for (const auto& [name, list] : rules) {
    for (const auto& rule : list) {
      for (const int symbol : rule) {
        if (rules.count(symbol) == 0) levels[symbol] = 0;
      }
    }
  }
  if (levels.empty()) throw bad(source, "no terminals: every symbol leads to itself");
  bool more = true;
  for (int level = 1; more; ++level) {
    more = false;
    for (const auto& [name, list] : rules) {
      if (levels.count(name) != 0) continue;
      const bool ready = std::all_of(list.begin(), list.end(), [&](const auto& rule) {
        return std::all_of(rule.begin(), rule.end(), [&](int symbol) {
          const auto found = levels.find(symbol);
          return found != levels.end() && found->second == level - 1;
        });
      });
      if (ready) more = true;
      if (ready) levels[name] = level;
    }
  }
  for (const auto& [name, list] : rules) {
    if (levels.count(name) != 0) continue;
    throw bad(source,
              "symbol " + std::to_string(name) +
                  " is in no level: its rules must all become symbols of the level below");
  }
  return levels;
}

}  // namespace

Grammar Grammar::parse(std::string_view json, const std::string& source) {
  const RulesByName rules = read_rules(json, source);
  const std::map<int, int> levels = find_levels(rules, source);
  if (levels.size() > most_symbols) throw bad(source, "more than 1,000 symbols");
  std::vector<std::pair<int, int>> order;  // level, name
  for (const auto& [name, level] : levels) order.emplace_back(level, name);
  std::sort(order.begin(), order.end());
  std::map<int, int> index;
  for (const auto& [level, name] : order) index.emplace(name, static_cast<int>(index.size()));

  std::vector<Symbol> symbols;
  std::set<int> used;
  for (const auto& [level, name] : order) {
    symbols.push_back({name, level, {}});
    if (level == 0) {
      if (name != static_cast<int>(symbols.size())) {
        throw bad(source,
                  "terminal " + std::to_string(name) + " where " + std::to_string(symbols.size()) +
                      " is missing",
                  "terminals, which have no rules, are 1, 2, 3, …");
      }
      continue;
    }
    for (const auto& rule : rules.at(name)) {
      symbols.back().rules.emplace_back();
      for (const int symbol : rule) {
        symbols.back().rules.back().push_back(index.at(symbol));
        used.insert(symbol);
      }
    }
  }
  for (const auto& [level, name] : order) {
    const bool root = name == order.back().second;
    if (root || used.count(name) != 0) continue;
    throw bad(source,
              "symbol " + std::to_string(name) + " is in no rule",
              "one symbol, the root, is in none");
  }
  Grammar grammar(std::move(symbols));
  if (grammar.max_length(grammar.root()) >= Grammar::greatest_sentence) {
    throw bad(source, "sentences of a million terminals and more");
  }
  return grammar;
}

Grammar Grammar::read(const std::filesystem::path& path) {
  return parse(read_file_within(path, max_json_file_bytes), path.string());
}

Grammar::Grammar(std::vector<Symbol> symbols) : symbols_(std::move(symbols)) {
  std::vector<double> entropies;
  std::vector<double> mean_lengths;
  for (const Symbol& symbol : symbols_) {
    terminals_ += symbol.level == 0;
    const auto count = static_cast<double>(symbol.rules.size());
    int64_t least = symbol.level == 0 ? 1 : Grammar::greatest_sentence;
    int64_t most = symbol.level == 0 ? 1 : 0;
    double entropy = symbol.level == 0 ? 0 : std::log(count);
    double mean = symbol.level == 0 ? 1 : 0;
    for (const Rule& rule : symbol.rules) {
      int64_t rule_least = 0;
      int64_t rule_most = 0;
      for (const int part : rule) {
        rule_least = std::min(Grammar::greatest_sentence, rule_least + min_lengths_[part]);
        rule_most = std::min(Grammar::greatest_sentence, rule_most + max_lengths_[part]);
        entropy += entropies[part] / count;
        mean += mean_lengths[part] / count;
      }
      least = std::min(least, rule_least);
      most = std::max(most, rule_most);
    }
    min_lengths_.push_back(least);
    max_lengths_.push_back(most);
    entropies.push_back(entropy);
    mean_lengths.push_back(mean);
  }
  nats_per_terminal_ = entropies.back() / mean_lengths.back();
}

std::string Grammar::to_json() const {
  nlohmann::ordered_json tree;
  for (auto symbol = symbols_.rbegin(); symbol != symbols_.rend(); ++symbol) {
    if (symbol->level == 0) continue;
    auto& list = tree[std::to_string(symbol->name)];
    for (const Rule& rule : symbol->rules) {
      auto& written = list.emplace_back();
      for (const int part : rule) written.push_back(symbols_[part].name);
    }
  }
  return json_text(tree);
}

void Grammar::expand(int symbol, RandomStream& random, std::vector<int32_t>& sentence) const {
  const Symbol& from = symbols_[symbol];
  const Rule& rule = from.rules[random.below(from.rules.size())];
  if (from.level == 1) {
    for (const int part : rule) sentence.push_back(part + 1);
    return;
  }
  for (const int part : rule) expand(part, random, sentence);
}

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
                "lower levels or max_rule_length");
  }
  return grammar;
}

}  // namespace forge::data::tasks
