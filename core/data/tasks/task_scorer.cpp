#include "core/data/tasks/task_scorer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/task_rows.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer_json.h"

namespace forge::data::tasks {
namespace {

const char* name_of(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::likeliest: return "likeliest ids";
    case AnswerKind::loss: return "losses";
    case AnswerKind::log_probabilities: return "log probabilities";
    case AnswerKind::continuation: return "continuations";
  }
  return "";
}

void require_length(size_t length, size_t expected, const char* what, int64_t row) {
  if (length == expected) return;
  throw Error("the worker answered row " + std::to_string(row) + " with " + std::to_string(length) +
              " " + what + " instead of " + std::to_string(expected));
}

/// Of tasks with ids of their own.
class TaskScorer : public Scorer {
 public:
  TaskScorer(std::unique_ptr<const Task> task, uint64_t seed, const ScorerOptions& options)
      : Scorer(options.rows),
        task_(std::move(task)),
        task_rows_(*task_, seed, Split::evaluation, options.seq_len) {}

  std::set<AnswerKind> requested() const override {
    if (task_->eval_mode() == EvalMode::teacher_forced) return {AnswerKind::likeliest};
    if (!lano()) return {AnswerKind::continuation};
    return {AnswerKind::log_probabilities, AnswerKind::continuation};
  }

  Scores finish() override { return std::exchange(scores_, {}); }

 private:
  void measure(const RowAnswer& answer) override {
    if (answer.kind == AnswerKind::likeliest) {
      measure_likeliest(answer);
    } else if (answer.kind == AnswerKind::log_probabilities) {
      measure_probabilities(answer);
    } else {
      task_->score(task_rows_.first_instance(answer.row), answer.ids, scores_);
    }
  }

  void measure_likeliest(const RowAnswer& answer) {
    const auto seq_len = static_cast<size_t>(task_rows_.seq_len());
    std::vector<int32_t> inputs(seq_len);
    std::vector<int32_t> targets(seq_len);
    task_rows_.fill(answer.row, inputs.data(), targets.data());
    const auto unscored = std::count(targets.begin(), targets.end(), unscored_target);
    require_length(answer.ids.size(), seq_len - static_cast<size_t>(unscored), "ids", answer.row);
    std::vector<int32_t> predicted(seq_len, -1);
    size_t next = 0;
    for (size_t i = 0; i < seq_len; ++i) {
      if (targets[i] != unscored_target) predicted[i] = answer.ids[next++];
    }
    task_rows_.score(answer.row, predicted.data(), scores_);
  }

  void measure_probabilities(const RowAnswer& answer) {
    if (!distribution_) compute_distributions();
    const size_t length = task_rows_.first_instance(answer.row).tokens.size();
    const auto positions = std::min<int64_t>(static_cast<int64_t>(length), task_rows_.seq_len());
    require_length(answer.values.size(),
                   static_cast<size_t>(positions * task_->vocab_size()),
                   "log probabilities",
                   answer.row);
    distribution_->score(answer.row, answer.values.data(), positions, scores_);
  }

  const Lano* lano() const { return dynamic_cast<const Lano*>(task_.get()); }

  void compute_distributions() {
    std::vector<std::vector<int32_t>> sentences;
    for (int64_t row = 0; row < rows_; ++row) {
      const Instance instance = task_rows_.first_instance(row);
      sentences.emplace_back(instance.tokens.begin() + 1, instance.tokens.end());
    }
    distribution_ = std::make_unique<GrammarDistribution>(*lano(), sentences);
  }

  std::unique_ptr<const Task> task_;
  TaskRows task_rows_;
  /// Of each row's first sentence, once it is needed.
  std::unique_ptr<GrammarDistribution> distribution_;
  Scores scores_;
};

/// How much a model knows of Capo's people: over the paragraphs that lie whole in a row, name_loss
/// and value_loss in nats and bits_per_parameter.
class CapoScorer : public Scorer {
 public:
  CapoScorer(Capo capo, const ScorerOptions& options)
      : Scorer(options.rows), capo_(std::move(capo)), options_(options) {}

  std::set<AnswerKind> requested() const override { return {AnswerKind::loss}; }

  Scores finish() override {
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

 private:
  void measure(const RowAnswer& answer) override {
    if (!tokens_) open();
    const TokenSpan read = tokens_->row_span(answer.row, options_.seq_len, options_.padded);
    const std::vector<double>& losses = answer.values;
    require_length(losses.size(), static_cast<size_t>(read.count - 1), "losses", answer.row);
    const auto begin = std::lower_bound(beginnings_.begin(), beginnings_.end(), read.first);
    for (int64_t i = begin - beginnings_.begin(); i < tokens_->documents(); ++i) {
      const TokenSpan span = tokens_->document(i);
      if (span.first + span.count > read.first + read.count) break;
      measure_document(i, losses, read.first + 1);
    }
  }

  void open() {
    tokens_.emplace(options_.tokens);
    tokenizer_ = load_tokenizer(options_.tokenizer);
    for (int64_t i = 0; i < tokens_->documents(); ++i) {
      beginnings_.push_back(tokens_->document(i).first);
    }
  }

  void measure_document(int64_t document, const std::vector<double>& losses, int64_t first_target) {
    const TokenSpan span = tokens_->document(document);
    const Biography biography = capo_.biography(Split::evaluation, static_cast<uint64_t>(document));
    const std::vector<int32_t> ids = tokenizer_->encode(biography.text);
    // What begins a document stands before its text, what ends it behind.
    const auto before = static_cast<int64_t>(tokenizer_->vocabulary().before_text.size());
    const auto length = static_cast<int64_t>(ids.size());
    const int64_t begin = span.first + before - first_target;
    if (begin < 0 || before + length > span.count) return;  // its first token is not predicted here
    const std::vector<float> of_text(losses.begin() + begin, losses.begin() + begin + length);
    const KnowledgeLoss loss = knowledge_loss(biography, token_ends(*tokenizer_, ids), of_text);
    scores_.add("name_loss", loss.name);
    scores_.add("value_loss", loss.values);
  }

  Capo capo_;
  ScorerOptions options_;
  std::optional<TokenFile> tokens_;  ///< once the first answer comes
  std::optional<Tokenizer> tokenizer_;
  std::vector<int64_t> beginnings_;  ///< of all documents, in tokens
  Scores scores_;
};

}  // namespace

void Scorer::add(const RowAnswer& answer) {
  if (requested().count(answer.kind) == 0) {
    throw Error(std::string("the worker answered ") + name_of(answer.kind) +
                ", which this task does not ask for");
  }
  if (answer.row < 0 || answer.row >= rows_) {
    throw Error("the worker answered for row " + std::to_string(answer.row) + " of " +
                std::to_string(rows_));
  }
  measure(answer);
}

std::unique_ptr<Scorer> make_scorer(const nlohmann::json& spec, const ScorerOptions& options) {
  if (is_capo(spec)) return std::make_unique<CapoScorer>(capo_of(spec), options);
  return std::make_unique<TaskScorer>(task_of(spec), seed_of(spec), options);
}

}  // namespace forge::data::tasks
