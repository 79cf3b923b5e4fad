#include "core/data/tasks/lano.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/data/tasks/task_support.h"

namespace forge::data::tasks {

Chart::Chart(const Grammar& grammar, const std::vector<int32_t>& string)
    : grammar_(grammar), size_(static_cast<int>(string.size())) {
  spans_.resize(grammar.symbols().size() * (string.size() + 1));
  sums_.assign(string.size() + 1, 0);
  const double scale = std::exp(grammar.nats_per_terminal());
  for (int begin = 0; begin < size_; ++begin) {
    const int terminal = string[begin] - 1;
    if (terminal < 0 || terminal >= grammar.terminals()) continue;
    spans_[terminal * (size_ + 1) + begin] = {{begin + 1, scale}};
  }
  for (int symbol = grammar.terminals(); symbol <= grammar.root(); ++symbol) {
    const bool root = symbol == grammar.root();  // only those from the string's begin matter
    for (int begin = 0; begin < (root ? std::min(1, size_) : size_); ++begin) {
      add_spans(symbol, begin);
    }
  }
}

void Chart::add_spans(int symbol, int begin) {
  const std::vector<Grammar::Rule>& rules = grammar_.symbols()[symbol].rules;
  const double weight = 1 / static_cast<double>(rules.size());
  int least = size_ + 1;
  int most = -1;
  Spans partial;
  Spans longer;
  for (const Grammar::Rule& rule : rules) {
    partial = {{begin, weight}};
    for (size_t i = 0; i < rule.size() && !partial.empty(); ++i) {
      const bool last = i + 1 == rule.size();
      longer.clear();
      for (const Span& before : partial) {
        for (const Span& span : spans(rule[i], before.end)) {
          if (!last) {
            longer.push_back({span.end, before.scaled * span.scaled});
            continue;
          }
          sums_[span.end] += before.scaled * span.scaled;
          least = std::min(least, span.end);
          most = std::max(most, span.end);
        }
      }
      partial.swap(longer);
    }
  }
  Spans& found = spans_[symbol * (size_ + 1) + begin];
  for (int end = least; end <= most; ++end) {
    if (sums_[end] == 0) continue;
    found.push_back({end, sums_[end]});
    sums_[end] = 0;
  }
}

const Chart::Span* Chart::find(int symbol, int begin, int end) const {
  const Spans& all = spans(symbol, begin);
  const auto at = std::lower_bound(
      all.begin(), all.end(), end, [](const Span& span, int wanted) { return span.end < wanted; });
  return at != all.end() && at->end == end ? &*at : nullptr;
}

bool Chart::derives(int symbol, int begin, int end) const {
  return find(symbol, begin, end) != nullptr;
}

double Chart::probability(int symbol, int begin, int end) const {
  const Span* span = find(symbol, begin, end);
  return span == nullptr ? 0
                         : span->scaled * std::exp(-grammar_.nats_per_terminal() * (end - begin));
}

std::vector<double> Chart::next_token_distribution() const {
  const int columns = size_ + 1;
  // begins[symbol, i]: probability that the tokens before i are the string's and that a symbol of
  // this level begins there.
  std::vector<double> begins(grammar_.symbols().size() * columns, 0.0);
  begins[grammar_.root() * columns] = 1;
  Spans partial;
  Spans longer;
  for (int symbol = grammar_.root(); symbol >= grammar_.terminals(); --symbol) {
    const std::vector<Grammar::Rule>& rules = grammar_.symbols()[symbol].rules;
    for (int begin = 0; begin < columns; ++begin) {
      const double here = begins[symbol * columns + begin];
      if (here == 0) continue;
      for (const Grammar::Rule& rule : rules) {
        partial = {{begin, here / static_cast<double>(rules.size())}};
        for (const int part : rule) {
          longer.clear();
          for (const Span& before : partial) {
            begins[part * columns + before.end] += before.scaled;
            for (const Span& span : spans(part, before.end)) {
              longer.push_back({span.end, before.scaled * span.scaled});
            }
          }
          partial.swap(longer);
        }
      }
    }
  }
  const int choices = grammar_.terminals() + 1;
  std::vector<double> truth(static_cast<size_t>(columns) * choices, 0.0);
  for (int i = 0; i < columns; ++i) {
    double* row = truth.data() + static_cast<size_t>(i) * choices;
    const Span* whole = find(grammar_.root(), 0, i);
    row[0] = whole == nullptr ? 0 : whole->scaled;
    for (int t = 0; t < grammar_.terminals(); ++t) row[t + 1] = begins[t * columns + i];
    double sum = 0;
    for (int t = 0; t < choices; ++t) sum += row[t];
    for (int t = 0; t < choices && sum > 0; ++t) row[t] /= sum;
  }
  return truth;
}

Lano::Lano(LanoConfig config) : grammar_(std::move(config.grammar)) {
  if (grammar_.symbols().empty()) {
    throw Error("grammar is missing", "name a grammar file such as cfg3f.json");
  }
}

std::string Lano::token_name(int32_t id) const {
  check_id(*this, id);
  return id == bos() ? "<bos>" : std::to_string(id);
}

int32_t Lano::min_length() const {
  return 1 + static_cast<int32_t>(grammar_.min_length(grammar_.root()));
}

void Lano::generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const {
  RandomStream random = instance_numbers("lano", seed, split, index);
  instance.clear();
  instance.tokens.push_back(bos());
  grammar_.expand(grammar_.root(), random, instance.tokens);
  instance.scored.assign(instance.tokens.size(), 1);
}

Prompt Lano::prompt(const Instance&) const {
  return {{bos()}, bos(), static_cast<int32_t>(grammar_.max_length(grammar_.root())) + 1};
}

void Lano::score(const Instance&, const std::vector<int32_t>& predicted, Scores& scores) const {
  const bool ended = !predicted.empty() && predicted.back() == bos();
  const bool right = ended && Chart(grammar_, {predicted.begin(), predicted.end() - 1}).accepts();
  scores.add("sentence_validity", right ? 1 : 0);
}

GrammarDistribution::GrammarDistribution(const Lano& task,
                                         const std::vector<std::vector<int32_t>>& sentences)
    : vocab_size_(task.vocab_size()), truth_(sentences.size()) {
  parallel_for(truth_.size(), [&](size_t i) {
    truth_[i] = Chart(task.grammar(), sentences[i]).next_token_distribution();
  });
}

void GrammarDistribution::score(int64_t sentence,
                                const double* log_probabilities,
                                int64_t positions,
                                Scores& scores) const {
  const std::vector<double>& truth = truth_.at(static_cast<size_t>(sentence));
  const int64_t rows =
      std::min<int64_t>(positions, static_cast<int64_t>(truth.size()) / vocab_size_);
  constexpr double added_probability = 1e-5;
  const double normal = 1 + vocab_size_ * added_probability;
  double total = 0;
  for (int64_t i = 0; i < rows * vocab_size_; ++i) {
    const double p = truth[static_cast<size_t>(i)];
    if (p == 0) continue;
    const double q = std::exp(log_probabilities[i]);
    const double true_log = std::log((p + added_probability) / normal);
    total += p * (true_log - std::log((q + added_probability) / normal));
  }
  scores.add("kl_divergence", total, rows);
}

}  // namespace forge::data::tasks
