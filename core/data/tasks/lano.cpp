#include "core/data/tasks/lano.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/data/tasks/chart.h"
#include "core/data/tasks/support.h"

namespace forge::data::tasks {
namespace {

constexpr double added_probability = 1e-5;

}  // namespace

Lano::Lano(LanoConfig config) : grammar_(std::move(config.grammar)) {
  if (grammar_.symbols().empty()) {
    throw Error("grammar is missing", {}, "name a grammar file such as cfg3f.json");
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

std::optional<Fault> Lano::find_sentence_fault(const std::vector<int32_t>& terminals) const {
  const Chart chart(grammar_, terminals);
  if (chart.accepts()) return std::nullopt;
  const std::vector<double> truth = chart.next_token_truth();
  for (size_t i = 0; i < terminals.size(); ++i) {
    const int32_t token = terminals[i];
    if (token < 1 || token > grammar_.terminals()) {
      return Fault{static_cast<int32_t>(i), "not a terminal"};
    }
    if (truth[i * vocab_size() + token] > 0) continue;
    return Fault{static_cast<int32_t>(i),
                 "no sentence of the grammar goes on with " + std::to_string(token) + " here"};
  }
  return Fault{static_cast<int32_t>(terminals.size()), "the sentence is not over here"};
}

std::optional<Fault> Lano::find_fault(const Instance& instance) const {
  return fault_of([&] {
    size_t at = 0;
    expect(instance.tokens, at, bos(), "bos");
    std::optional<Fault> fault =
        find_sentence_fault({instance.tokens.begin() + 1, instance.tokens.end()});
    if (fault) {
      ++fault->position;
      throw *fault;
    }
    check_scored(instance, std::vector<uint8_t>(instance.tokens.size(), 1));
    check_answers(instance, {});
  });
}

Prompt Lano::prompt(const Instance&) const {
  return {{bos()}, bos(), static_cast<int32_t>(grammar_.max_length(grammar_.root())) + 1};
}

void Lano::score(const Instance&, const std::vector<int32_t>& predicted, Scores& scores) const {
  const bool ended = !predicted.empty() && predicted.back() == bos();
  const bool right = ended && !find_sentence_fault({predicted.begin(), predicted.end() - 1});
  scores.add("sentence_validity", right ? 1 : 0);
}

LanoTruth::LanoTruth(const Lano& task, const std::vector<std::vector<int32_t>>& sentences)
    : vocab_size_(task.vocab_size()), truth_(sentences.size()) {
  parallel_for(truth_.size(), [&](size_t i) {
    truth_[i] = Chart(task.grammar(), sentences[i]).next_token_truth();
  });
}

void LanoTruth::score(int64_t sentence,
                      const double* log_probabilities,
                      int64_t positions,
                      Scores& scores) const {
  const std::vector<double>& truth = truth_.at(static_cast<size_t>(sentence));
  const int64_t rows =
      std::min<int64_t>(positions, static_cast<int64_t>(truth.size()) / vocab_size_);
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
