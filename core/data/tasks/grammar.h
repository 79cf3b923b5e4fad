#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"

namespace forge::data::tasks {

/// Shape of a grammar to be drawn; the default is that of cfg3k.
struct GrammarShape {
  int levels = 7;  ///< of symbols above the terminals, the root's included
  int symbols_per_level = 3;
  int terminals = 3;
  int min_rules = 3;  ///< of each symbol
  int max_rules = 4;
  int min_rule_length = 2;
  int max_rule_length = 3;
};

/// A context-free grammar in levels ("Physics of Language Models: Part 1, Learning Hierarchical
/// Language Structures", Allen-Zhu and Li, 2023): the symbols of a level become symbols of the
/// level below, those of the lowest terminals 1, 2, …; the top level is the root alone. A symbol
/// becomes each of its rules with the same probability, so it has no recursion and its sentences
/// have a greatest length. Symbols are numbered from the terminals, 0 …, up to the root, which is
/// last.
class Grammar {
 public:
  using Rule = std::vector<int>;
  struct Symbol {
    int name = 0;   ///< as written: terminals are 1, 2, …
    int level = 0;  ///< 0: a terminal
    std::vector<Rule> rules;
  };

  /// Sentences have fewer terminals.
  static constexpr int64_t greatest_sentence = 1 << 20;

  /// A grammar without symbols, which no task takes.
  Grammar() = default;

  /// Reads the published format, a JSON object from each symbol to the list of its rules:
  ///     {"22": [[20, 21], [20, 20]], "20": [[1, 2]], "21": [[2], [3, 1]]}
  /// Throws Error, naming `source`, for anything that is no grammar in levels.
  static Grammar parse(std::string_view json, const std::string& source);
  static Grammar read(const std::filesystem::path& path);

  /// A fresh grammar: numbers of rules, their lengths and symbols uniform within the shape; no two
  /// rules of a level are equal and every symbol is used, as in the published ones.
  static Grammar draw(const GrammarShape& shape, uint64_t seed);

  /// The published format again.
  std::string to_json() const;

  int terminals() const { return terminals_; }
  const std::vector<Symbol>& symbols() const { return symbols_; }
  int root() const { return static_cast<int>(symbols_.size()) - 1; }

  /// Shortest and greatest number of terminals that a symbol becomes.
  int64_t min_length(int symbol) const { return min_lengths_[symbol]; }
  int64_t max_length(int symbol) const { return max_lengths_[symbol]; }
  /// Nats of choice that a terminal of a sentence carries: entropy of a derivation over mean
  /// length.
  double nats_per_terminal() const { return nats_per_terminal_; }

  /// Appends a random sentence of the symbol: terminals 1, 2, ….
  void expand(int symbol, RandomStream& random, std::vector<int32_t>& sentence) const;

 private:
  /// Takes symbols in order of levels with the root last, and computes the rest.
  explicit Grammar(std::vector<Symbol> symbols);

  std::vector<Symbol> symbols_;
  int terminals_ = 0;
  std::vector<int64_t> min_lengths_;
  std::vector<int64_t> max_lengths_;
  double nats_per_terminal_ = 0;
};

}  // namespace forge::data::tasks
