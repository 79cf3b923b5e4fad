#include "backends/libtorch/worker/answers.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "backends/libtorch/worker/generate.h"
#include "core/base/error.h"
#include "core/data/target.h"
#include "core/data/tasks/spec.h"

namespace forge::worker {
namespace {

using protocol::AnswerKind;

constexpr int64_t most_probabilities = 1 << 16;  // of a row, so that its line stays short

/// Short in JSON, and far finer than what is made of it.
double rounded(double nats) { return std::round(nats * 1e6) / 1e6; }

/// Of a row's values those whose target is scored.
template <class T>
std::vector<T> scored(const T* values, const int32_t* targets, int64_t count) {
  std::vector<T> kept;
  for (int64_t i = 0; i < count; ++i) {
    if (targets[i] != data::unscored_target) kept.push_back(values[i]);
  }
  return kept;
}

/// Negative log likelihood of each target, 0 where it is not scored: float64 [B, T].
at::Tensor losses_of(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor chosen = targets.clamp_min(0).to(at::kLong).unsqueeze(-1);
  const at::Tensor likelihood = logits.gather(-1, chosen).squeeze(-1).to(at::kDouble);
  return logits.to(at::kDouble).logsumexp(-1) - likelihood;
}

}  // namespace

Answers::Answers(const protocol::Request& request,
                 const config::Experiment& experiment,
                 const EventWriter& events)
    : request_(request),
      events_(events),
      seq_len_(experiment.train.seq_len),
      batch_size_(experiment.train.eval_batch_size) {
  const protocol::TokenSource source = protocol::first_of(request.evaluation_tokens);
  const bool of_task = !source.task.empty() && source.path.empty();
  if (of_task) {
    task_ = data::tasks::task_of(source.task);
    rows_.emplace(*task_, data::tasks::seed_of(source.task), data::Split::evaluation, seq_len_);
  }
  const bool needs_task = wants(AnswerKind::log_probabilities) || wants(AnswerKind::continuation);
  if (needs_task && !of_task) {
    throw Error("only rows of a task that has ids of its own have a first text to ask about");
  }
  if (wants(AnswerKind::log_probabilities) &&
      int64_t{seq_len_} * experiment.model.vocab_size > most_probabilities) {
    throw Error("log probabilities of " + std::to_string(seq_len_) + " positions and " +
                std::to_string(experiment.model.vocab_size) + " ids are too many for a line");
  }
}

bool Answers::wants(AnswerKind kind) const {
  return std::find(request_.answers.begin(), request_.answers.end(), kind) !=
         request_.answers.end();
}

RowSink Answers::row_sink(int64_t step) const {
  if (!wants(AnswerKind::likeliest) && !wants(AnswerKind::loss) &&
      !wants(AnswerKind::log_probabilities)) {
    return {};
  }
  return [this, step](int64_t first_row, const at::Tensor& logits, const at::Tensor& targets) {
    send_rows(step, first_row, logits, targets);
  };
}

void Answers::send_rows(int64_t step,
                        int64_t first_row,
                        const at::Tensor& logits,
                        const at::Tensor& targets) const {
  const at::Tensor wanted = targets.cpu().contiguous();
  at::Tensor likeliest;
  at::Tensor losses;
  if (wants(AnswerKind::likeliest)) likeliest = logits.argmax(-1).to(at::kInt).cpu().contiguous();
  if (wants(AnswerKind::loss)) losses = losses_of(logits, targets).cpu().contiguous();
  // All are made before any is sent: where memory runs out, the rows can be computed anew.
  std::vector<protocol::Answers> made;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const int32_t* row_targets = wanted.data_ptr<int32_t>() + i * seq_len_;
    protocol::Answers answers;
    answers.step = step;
    answers.row = first_row + i;
    if (likeliest.defined()) {
      answers.kind = AnswerKind::likeliest;
      answers.ids = scored(likeliest.data_ptr<int32_t>() + i * seq_len_, row_targets, seq_len_);
      made.push_back(answers);
    }
    if (losses.defined()) {
      answers.kind = AnswerKind::loss;
      answers.ids.clear();
      answers.values = scored(losses.data_ptr<double>() + i * seq_len_, row_targets, seq_len_);
      for (double& value : answers.values) value = rounded(value);
      made.push_back(answers);
    }
    if (wants(AnswerKind::log_probabilities)) made.push_back(probabilities(answers, logits[i]));
  }
  for (const protocol::Answers& answers : made) events_.send(answers);
}

protocol::Answers Answers::probabilities(protocol::Answers answers,
                                         const at::Tensor& logits) const {
  const auto text = static_cast<int64_t>(rows_->first_instance(answers.row).tokens.size());
  const at::Tensor values = logits.slice(0, 0, std::min<int64_t>(text, seq_len_))
                                .to(at::kDouble)
                                .slice(1, 0, task_->vocab_size())
                                .log_softmax(-1)
                                .cpu()
                                .contiguous();
  answers.kind = AnswerKind::log_probabilities;
  answers.ids.clear();
  answers.values.assign(values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  for (double& value : answers.values) value = rounded(value);
  return answers;
}

void Answers::send_continuations(int64_t step,
                                 const LlamaCanon& model,
                                 const std::function<void(double)>& progress) const {
  if (!wants(AnswerKind::continuation)) return;
  const c10::InferenceMode inference_mode;
  protocol::Generation wanted;
  wanted.context = seq_len_;
  wanted.batch_size = batch_size_;
  wanted.temperature = task_->asked() == data::tasks::Asked::sampled ? 1 : 0;
  wanted.seed = data::tasks::seed_of(protocol::first_of(request_.evaluation_tokens).task);
  std::vector<protocol::Answers> answers;
  for (int64_t row = 0; row < request_.answer_rows; ++row) {
    std::optional<data::tasks::Prompt> prompt = rows_->prompt(row);
    if (!prompt) continue;
    wanted.prompts.push_back(std::move(prompt->tokens));
    wanted.max_tokens = std::max<int64_t>(wanted.max_tokens, prompt->max_new_tokens);
    wanted.end_ids = {prompt->stop};
    answers.push_back({step, AnswerKind::continuation, row, {}, {}});
  }
  if (answers.empty()) return;
  size_t ended = 0;
  const auto tell = [&](const protocol::Tokens& tokens) {
    for (size_t i = 0; i < tokens.samples.size(); ++i) {
      protocol::Answers& answer = answers[static_cast<size_t>(tokens.samples[i])];
      answer.ids.push_back(tokens.ids[i]);
      if (tokens.ended[i] == protocol::Ending::none) continue;
      events_.send(answer);
      ++ended;
    }
    progress(static_cast<double>(ended) / static_cast<double>(answers.size()));
  };
  // A stop waits for it: part of an evaluation would be another figure under the same name.
  generate_tokens(model, wanted, tell, [] { return false; });
}

}  // namespace forge::worker
