#pragma once

#include <cstdint>
#include <vector>

#include "core/data/tasks/grammar.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// What a grammar makes of one string of terminals: the inside probabilities of all symbols over
/// all its spans (Baker 1979, computed level by level) and, from the root down, the probability of
/// each next terminal (Jelinek and Lafferty 1991, which levels make a single pass). Probabilities
/// are kept times a constant to the power of the span's length, so that long sentences do not
/// underflow. `grammar` must outlive the chart.
class Chart {
 public:
  /// `string` holds terminals 1 …; a number that is none is in no span.
  Chart(const Grammar& grammar, const std::vector<int32_t>& string);

  /// Whether the root becomes the whole string.
  bool accepts() const { return derives(grammar_.root(), 0, size_); }
  bool derives(int symbol, int begin, int end) const;
  /// Probability that a symbol becomes the string's tokens begin … end-1.
  double probability(int symbol, int begin, int end) const;

  /// Distributions of what follows each prefix of the string, of lengths 0 … size: row p holds
  /// {end, terminal 1, terminal 2, …}. All zero where no sentence begins with the prefix.
  std::vector<double> next_token_distribution() const;

 private:
  struct Span {
    int end;
    double scaled;
  };
  using Spans = std::vector<Span>;  ///< in increasing order of ends

  const Spans& spans(int symbol, int begin) const { return spans_[symbol * (size_ + 1) + begin]; }
  const Span* find(int symbol, int begin, int end) const;
  void add_spans(int symbol, int begin);

  const Grammar& grammar_;
  int size_;
  std::vector<Spans> spans_;  ///< per symbol and begin
  std::vector<double> sums_;  ///< scratch, per end
};

/// Lano (Part 4.1, section 2; grammars of Part 1): sentences of a grammar in levels,
///
///     <bos> 3 3 1 2 …  <bos> 1 2 …
///
/// each an instance; the next one's bos is its end. All tokens carry loss.
///
/// Ids: bos 0, terminals 1, 2, 3.
class Lano : public Task {
 public:
  explicit Lano(LanoConfig config);

  std::string name() const override { return "lano"; }
  int32_t vocab_size() const override { return grammar_.terminals() + 1; }
  std::string token_name(int32_t id) const override;
  int32_t min_length() const override;
  void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const override;

  EvalMode eval_mode() const override { return EvalMode::sampled; }
  /// bos; every sentence has room behind it, so a caller caps the new tokens at its context.
  Prompt prompt(const Instance& instance) const override;
  /// sentence_validity: `predicted` is a sentence of the grammar and a bos.
  void score(const Instance& instance,
             const std::vector<int32_t>& predicted,
             Scores& scores) const override;

  const Grammar& grammar() const { return grammar_; }
  static constexpr int32_t bos() { return 0; }

 private:
  Grammar grammar_;
};

/// What the grammar says comes next at each place of some sentences, computed once, on all cores,
/// for the evaluations of a run.
class GrammarDistribution {
 public:
  /// Sentences are terminals alone.
  GrammarDistribution(const Lano& task, const std::vector<std::vector<int32_t>>& sentences);

  int64_t sentences() const { return static_cast<int64_t>(truth_.size()); }
  /// [length + 1, vocab_size] probabilities of sentence i: row p is what follows bos and p
  /// terminals.
  const std::vector<double>& of(int64_t sentence) const { return truth_[sentence]; }

  /// Adds kl_divergence, the mean over positions of KL(truth || model) in nats: `log_probabilities`
  /// [positions, vocab_size] are the model's after bos and each of the first positions - 1
  /// terminals of a sentence. As the paper does, 1e-5 is added to both distributions, which are
  /// then normalised, within the logarithms; the weights are the truth's.
  void score(int64_t sentence,
             const double* log_probabilities,
             int64_t positions,
             Scores& scores) const;

 private:
  int32_t vocab_size_;
  std::vector<std::vector<double>> truth_;
};

}  // namespace forge::data::tasks
