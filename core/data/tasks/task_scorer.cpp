#include "core/data/tasks/task_scorer.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/common.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/task_rows.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer_json.h"

namespace forge::data::tasks {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error("the worker answered " + what + ", which this task does not ask for");
}

void require_row(int64_t row, int64_t rows) {
  if (row >= 0 && row < rows) return;
  throw Error("the worker answered for row " + std::to_string(row) + " of " + std::to_string(rows));
}

void require_length(size_t length, size_t expected, const std::string& what, int64_t row) {
  if (length == expected) return;
  throw Error("the worker answered row " + std::to_string(row) + " with " + std::to_string(length) +
              " " + what + " instead of " + std::to_string(expected));
}

/// Of tasks with ids of their own.
class TaskScorer : public Scorer {
 public:
  TaskScorer(std::unique_ptr<const Task> task, uint64_t seed, const ScorerOptions& options)
      : task_(std::move(task)),
        rows_(*task_, seed, Split::evaluation, options.seq_len),
        options_(options) {}

  RequestedOutputs requested() const override {
    RequestedOutputs requested;
    requested.argmax = task_->eval_mode() == EvalMode::teacher_forced;
    requested.continuation = !requested.argmax;
    requested.log_probabilities = lano() != nullptr;
    return requested;
  }

  void add_argmax(int64_t row, const std::vector<int32_t>& ids) override {
    if (!requested().argmax) return Scorer::add_argmax(row, ids);
    require_row(row, options_.rows);
    const auto seq_len = static_cast<size_t>(rows_.seq_len());
    std::vector<int32_t> inputs(seq_len);
    std::vector<int32_t> targets(seq_len);
    rows_.fill(row, inputs.data(), targets.data());
    const auto unscored = std::count(targets.begin(), targets.end(), unscored_target);
    require_length(ids.size(), seq_len - static_cast<size_t>(unscored), "ids", row);
    std::vector<int32_t> predicted(seq_len, -1);
    size_t next = 0;
    for (size_t i = 0; i < seq_len; ++i) {
      if (targets[i] != unscored_target) predicted[i] = ids[next++];
    }
    rows_.score(row, predicted.data(), scores_);
  }

  void add_continuation(int64_t row, const std::vector<int32_t>& ids) override {
    if (!requested().continuation) return Scorer::add_continuation(row, ids);
    require_row(row, options_.rows);
    task_->score(rows_.first_instance(row), ids, scores_);
  }

  void add_log_probabilities(int64_t row, const std::vector<double>& values) override {
    if (!requested().log_probabilities) return Scorer::add_log_probabilities(row, values);
    require_row(row, options_.rows);
    if (!distribution_) compute_distributions();
    const auto positions = static_cast<int64_t>(
        std::min(rows_.first_instance(row).tokens.size(), static_cast<size_t>(rows_.seq_len())));
    require_length(values.size(),
                   static_cast<size_t>(positions * task_->vocab_size()),
                   "log probabilities",
                   row);
    distribution_->score(row, values.data(), positions, scores_);
  }

  Scores finish() override { return std::exchange(scores_, {}); }

 private:
  const Lano* lano() const { return dynamic_cast<const Lano*>(task_.get()); }

  void compute_distributions() {
    std::vector<std::vector<int32_t>> sentences;
    for (int64_t row = 0; row < options_.rows; ++row) {
      const Instance instance = rows_.first_instance(row);
      sentences.emplace_back(instance.tokens.begin() + 1, instance.tokens.end());
    }
    distribution_ = std::make_unique<GrammarDistribution>(*lano(), sentences);
  }

  std::unique_ptr<const Task> task_;
  TaskRows rows_;
  ScorerOptions options_;
  std::unique_ptr<GrammarDistribution>
      distribution_;  ///< of each row's first sentence, once it is needed
  Scores scores_;
};

}  // namespace

void Scorer::add_argmax(int64_t, const std::vector<int32_t>&) { refuse("likeliest ids"); }
void Scorer::add_losses(int64_t, const std::vector<double>&) { refuse("losses"); }
void Scorer::add_log_probabilities(int64_t, const std::vector<double>&) {
  refuse("log probabilities");
}
void Scorer::add_continuation(int64_t, const std::vector<int32_t>&) { refuse("continuations"); }

std::unique_ptr<Scorer> make_scorer(const nlohmann::json& spec, const ScorerOptions& options) {
  if (is_capo(spec)) return std::make_unique<CapoScorer>(capo_of(spec), options);
  return std::make_unique<TaskScorer>(task_of(spec), seed_of(spec), options);
}

CapoScorer::CapoScorer(Capo capo, const ScorerOptions& options)
    : capo_(std::move(capo)), options_(options) {}

RequestedOutputs CapoScorer::requested() const {
  RequestedOutputs requested;
  requested.losses = true;
  return requested;
}

void CapoScorer::open() {
  tokens_.emplace(options_.tokens);
  tokenizer_ = load_tokenizer(options_.tokenizer);
  for (int64_t i = 0; i < tokens_->documents(); ++i) {
    beginnings_.push_back(tokens_->document(i).first);
  }
}

/// The tokens that a row reads: all but the first are its targets.
TokenSpan CapoScorer::span_of(int64_t row) const {
  const int64_t seq_len = options_.seq_len;
  if (!options_.padded) return {row * seq_len, seq_len + 1};
  const TokenSpan document = tokens_->document(row);
  return {document.first, std::min(seq_len, document.count)};
}

void CapoScorer::add_losses(int64_t row, const std::vector<double>& losses) {
  require_row(row, options_.rows);
  if (!tokens_) open();
  const TokenSpan read = span_of(row);
  require_length(losses.size(), static_cast<size_t>(read.count - 1), "losses", row);
  const auto begin = std::lower_bound(beginnings_.begin(), beginnings_.end(), read.first);
  for (int64_t i = begin - beginnings_.begin(); i < tokens_->documents(); ++i) {
    const TokenSpan span = tokens_->document(i);
    if (span.first + span.count > read.first + read.count) break;
    measure(i, losses, read.first + 1);
  }
}

void CapoScorer::measure(int64_t document,
                         const std::vector<double>& losses,
                         int64_t first_target) {
  const TokenSpan span = tokens_->document(document);
  const Biography biography = capo_.biography(Split::evaluation, static_cast<uint64_t>(document));
  const std::vector<int32_t> ids = tokenizer_->encode(biography.text);
  // What begins a document stands before its text, what ends it behind.
  const int64_t before = static_cast<int64_t>(tokenizer_->vocabulary().before_text.size());
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t begin = span.first + before - first_target;
  if (begin < 0 || before + length > span.count)
    return;  // its first token is no target of this row
  std::vector<float> of_text;
  for (int64_t i = begin; i < begin + length; ++i) {
    of_text.push_back(static_cast<float>(losses[static_cast<size_t>(i)]));
  }
  const KnowledgeLoss loss = knowledge_loss(biography, token_ends(*tokenizer_, ids), of_text);
  scores_.add("name_loss", loss.name);
  scores_.add("value_loss", loss.values);
}

Scores CapoScorer::finish() {
  Scores scores = std::exchange(scores_, {});
  const std::optional<double> name = scores.mean("name_loss");
  if (!name) return scores;
  const KnowledgeLoss mean{*name, *scores.mean("value_loss")};
  const int64_t count = scores.sums().at("name_loss").count;
  const double bits =
      bits_per_parameter(capo_.people(), mean, static_cast<double>(options_.parameters));
  scores.add("bits_per_parameter", bits * static_cast<double>(count), count);
  return scores;
}

}  // namespace forge::data::tasks
