#pragma once

#include <cstdint>
#include <vector>

#include "core/data/tasks/grammar.h"

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
  std::vector<double> next_token_truth() const;

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

}  // namespace forge::data::tasks
