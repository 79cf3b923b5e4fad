#include "core/data/tasks/capo_examination.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/data/tokenizer_json.h"

namespace forge::data::tasks {

CapoExamination::CapoExamination(Capo capo, const ExaminationOptions& options)
    : capo_(std::move(capo)), options_(options) {}

Wanted CapoExamination::wanted() const {
  Wanted wanted;
  wanted.losses = true;
  return wanted;
}

void CapoExamination::open() {
  tokens_.emplace(options_.tokens);
  tokenizer_ = load_tokenizer(options_.tokenizer);
  for (int64_t i = 0; i < tokens_->documents(); ++i) {
    beginnings_.push_back(tokens_->document(i).first);
  }
}

/// The tokens that a row reads: all but the first are its targets.
TokenSpan CapoExamination::span_of(int64_t row) const {
  const int64_t seq_len = options_.seq_len;
  if (!options_.padded) return {row * seq_len, seq_len + 1};
  const TokenSpan document = tokens_->document(row);
  return {document.first, std::min(seq_len, document.count)};
}

void CapoExamination::take_losses(int64_t row, const std::vector<double>& losses) {
  if (row < 0 || row >= options_.rows) {
    throw Error("the worker answered for row " + std::to_string(row) + " of " +
                std::to_string(options_.rows));
  }
  if (!tokens_) open();
  const TokenSpan read = span_of(row);
  if (static_cast<int64_t>(losses.size()) != read.count - 1) {
    throw Error("the worker answered row " + std::to_string(row) + " with " +
                std::to_string(losses.size()) + " losses instead of " +
                std::to_string(read.count - 1));
  }
  const auto begin = std::lower_bound(beginnings_.begin(), beginnings_.end(), read.first);
  for (int64_t i = begin - beginnings_.begin(); i < tokens_->documents(); ++i) {
    const TokenSpan span = tokens_->document(i);
    if (span.first + span.count > read.first + read.count) break;
    measure(i, losses, read.first + 1);
  }
}

void CapoExamination::measure(int64_t document,
                              const std::vector<double>& losses,
                              int64_t first_target) {
  const TokenSpan span = tokens_->document(document);
  const Biography biography = capo_.biography(Split::evaluation, static_cast<uint64_t>(document));
  const std::vector<int32_t> ids = tokenizer_->encode(biography.text);
  // What begins a document stands before its text, what ends it behind.
  const int64_t before = static_cast<int64_t>(tokenizer_->vocabulary().before_text.size());
  const auto length = static_cast<int64_t>(ids.size());
  const int64_t begin = span.first + before - first_target;
  if (begin < 0 || before + length > span.count) return;  // nothing tells its first token
  std::vector<float> of_text;
  for (int64_t i = begin; i < begin + length; ++i) {
    of_text.push_back(static_cast<float>(losses[static_cast<size_t>(i)]));
  }
  const KnowledgeLoss loss = knowledge_loss(biography, token_ends(*tokenizer_, ids), of_text);
  scores_.add("name_loss", loss.name);
  scores_.add("value_loss", loss.values);
}

Scores CapoExamination::finish() {
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
