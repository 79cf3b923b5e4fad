#include "backends/libtorch/worker/evaluate.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <c10/core/InferenceMode.h>

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/data/common.h"
#include "core/data/tasks/task_spec.h"

namespace forge::libtorch {

Evaluator::Evaluator(const Model& model,
                     int seq_len,
                     int batch_size,
                     const at::Device& device,
                     OnMicroBatch on_micro_batch,
                     ProcessGroup* group)
    : model_(model),
      dealt_(batch_size),
      batch_size_(batch_size),
      device_(device),
      on_micro_batch_(std::move(on_micro_batch)),
      group_(group && group->count() > 1 ? group : nullptr),
      uploader_(device, seq_len),
      graph_(device),
      batch_sums_(at::zeros({batch_size}, at::TensorOptions(device).dtype(at::kDouble))) {}

void Evaluator::set_batch_size(int rows) {
  batch_size_ = rows;
  batch_sums_ = at::zeros({rows}, batch_sums_.options());
  graph_.reset();
}

EvaluationResult Evaluator::evaluate(const data::Dataset& dataset,
                                     const std::function<void(double)>& progress,
                                     const LogitsSink& on_rows) {
  const at::NoGradGuard no_grad;
  const int64_t rows = dataset.rows();
  sums_ = at::zeros({rows}, batch_sums_.options());
  row_tokens_.assign(static_cast<size_t>(rows), 0);
  int64_t row = 0;
  while (row < rows) {
    // Of several processes each has batches of its own, which it may have to divide.
    const int64_t end = group_ ? std::min(rows, (row / dealt_ + 1) * dealt_) : rows;
    if (!is_own(row, bool(on_rows))) {
      row = end;
      continue;
    }
    const int count = static_cast<int>(std::min<int64_t>(batch_size_, end - row));
    const auto out_of_memory =
        run_or_out_of_memory([&] { evaluate_rows(dataset, row, count, on_rows); });
    if (!out_of_memory) {
      row += count;
      progress(double(row) / double(rows));
      continue;
    }
    set_batch_size(halved_micro_batch(count, *out_of_memory, device_));
    if (on_micro_batch_) on_micro_batch_({batch_size_, *out_of_memory});
    // Losses from the beginning have the bits that later evaluations give; answers that were sent
    // are valid.
    if (!on_rows) row = 0;
  }
  if (group_) gather_rows();
  const at::Tensor sums = sums_.cpu();
  EvaluationResult result{0, 0, {}, row_tokens_};
  for (int64_t i = 0; i < rows; ++i) {
    const double sum = sums.data_ptr<double>()[i];
    const int64_t tokens = row_tokens_[static_cast<size_t>(i)];
    result.loss += sum;
    result.tokens += tokens;
    result.row_losses.push_back(tokens > 0 ? sum / double(tokens) : 0);
  }
  if (result.tokens > 0) result.loss /= double(result.tokens);
  return result;
}

bool Evaluator::is_own(int64_t row, bool wants_logits) const {
  if (!group_) return true;
  return wants_logits ? group_->is_first() : (row / dealt_) % group_->count() == group_->rank();
}

void Evaluator::gather_rows() {
  // Each row's sum is of one process, and zero in the others.
  sums_.copy_(group_->gather(sums_).sum(0));
  const std::vector<double> own(row_tokens_.begin(), row_tokens_.end());
  const std::vector<double> all = group_->gather(own);
  std::fill(row_tokens_.begin(), row_tokens_.end(), 0);
  for (size_t i = 0; i < all.size(); ++i) row_tokens_[i % own.size()] += int64_t(all[i]);
}

void Evaluator::evaluate_rows(const data::Dataset& dataset,
                              int64_t row,
                              int count,
                              const LogitsSink& on_rows) {
  const bool whole = count == batch_size_;
  const data::RowBatch rows = load_rows(dataset, row, count);
  const Batch batch = whole ? uploader_.upload(rows) : to_batch(rows, dataset.seq_len(), device_);
  for (int i = 0; i < count; ++i) {
    const auto begin = rows.targets.begin() + int64_t{i} * dataset.seq_len();
    const auto unscored = std::count(begin, begin + dataset.seq_len(), data::unscored_target);
    row_tokens_[static_cast<size_t>(row + i)] = dataset.seq_len() - unscored;
  }
  at::Tensor sums = sums_.narrow(0, row, count);
  if (on_rows) {
    const at::Tensor logits = model_.logits(batch.inputs, batch.documents);
    sums.copy_(ops::negative_log_likelihoods(logits.flatten(0, 1), batch.targets.flatten())
                   .view(batch.targets.sizes())
                   .sum({1}, /*keepdim=*/false, at::kDouble));
    on_rows(row, logits, batch.targets);
  } else if (whole) {
    const auto work = [&] {
      batch_sums_.copy_(model_.loss_sums(batch.inputs, batch.documents, batch.targets));
    };
    graph_.run(work, batch.documents.starts);
    sums.copy_(batch_sums_);
  } else {
    sums.copy_(model_.loss_sums(batch.inputs, batch.documents, batch.targets));
  }
}

namespace {

using worker::AnswerKind;

constexpr int64_t most_probabilities = 1 << 16;  // of a row, so that its line stays short

/// Six decimals: short in JSON, and more than scores need.
double rounded(double nats) { return std::round(nats * 1e6) / 1e6; }

/// The values of a row at scored targets.
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

AnswerSender::AnswerSender(const worker::Request& request,
                           const config::Experiment& experiment,
                           const EventWriter& events)
    : request_(request),
      events_(events),
      seq_len_(experiment.train.seq_len),
      batch_size_(experiment.train.eval_batch_size) {
  const worker::TokenSource source = worker::first_source(request.evaluation_tokens);
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
      int64_t{seq_len_} * task_->vocab_size() > most_probabilities) {
    throw Error("log probabilities of " + std::to_string(seq_len_) + " positions and " +
                    std::to_string(task_->vocab_size()) + " ids are too many for a line",
                "set train.seq_len lower");
  }
}

bool AnswerSender::wants(AnswerKind kind) const {
  return std::find(request_.answers.begin(), request_.answers.end(), kind) !=
         request_.answers.end();
}

LogitsSink AnswerSender::logits_sink(int64_t step) const {
  if (!wants(AnswerKind::likeliest) && !wants(AnswerKind::loss) &&
      !wants(AnswerKind::log_probabilities)) {
    return {};
  }
  return [this, step](int64_t first_row, const at::Tensor& logits, const at::Tensor& targets) {
    send_rows(step, first_row, logits, targets);
  };
}

void AnswerSender::send_rows(int64_t step,
                             int64_t first_row,
                             const at::Tensor& logits,
                             const at::Tensor& targets) const {
  const at::Tensor wanted = targets.cpu().contiguous();
  at::Tensor likeliest;
  at::Tensor losses;
  if (wants(AnswerKind::likeliest)) likeliest = logits.argmax(-1).to(at::kInt).cpu().contiguous();
  if (wants(AnswerKind::loss)) losses = losses_of(logits, targets).cpu().contiguous();
  // All are made before any is sent: if memory runs out, the rows are computed again.
  std::vector<worker::Answers> made;
  for (int64_t i = 0; i < logits.size(0); ++i) {
    const int32_t* row_targets = wanted.data_ptr<int32_t>() + i * seq_len_;
    worker::Answers answers;
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
  for (const worker::Answers& answers : made) events_.send(answers);
}

worker::Answers AnswerSender::probabilities(worker::Answers answers,
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

void AnswerSender::send_continuations(int64_t step,
                                      const Model& model,
                                      const std::function<void(double)>& progress) const {
  if (!wants(AnswerKind::continuation)) return;
  const c10::InferenceMode inference_mode;
  worker::Generation wanted;
  wanted.context = seq_len_;
  wanted.batch_size = batch_size_;
  wanted.temperature = task_->eval_mode() == data::tasks::EvalMode::sampled ? 1 : 0;
  wanted.seed = data::tasks::seed_of(worker::first_source(request_.evaluation_tokens).task);
  std::vector<worker::Answers> answers;
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
  const auto on_tokens = [&](const worker::Tokens& tokens) {
    for (size_t i = 0; i < tokens.samples.size(); ++i) {
      worker::Answers& answer = answers[static_cast<size_t>(tokens.samples[i])];
      answer.ids.push_back(tokens.ids[i]);
      if (tokens.ended[i] == worker::FinishReason::none) continue;
      events_.send(answer);
      ++ended;
    }
    progress(static_cast<double>(ended) / static_cast<double>(answers.size()));
  };
  // A stop waits for it: a partial evaluation would be another metric under the same name.
  generate_tokens(model, wanted, on_tokens, [] { return false; });
}

worker::Result evaluate_model(const worker::Request& request,
                              const at::Device& device,
                              const EventWriter& events) {
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  const Model model = load_model(request, experiment, device);
  const data::Dataset dataset = evaluation_rows(request.evaluation_tokens, experiment);
  const AnswerSender answers(request, experiment, events);
  const auto progress = [&](double fraction) {
    events.send(worker::Progress{0, "evaluate", fraction});
  };
  const double began = steady_seconds();
  const auto report_micro_batch = [](const MicroBatchReduction& reduction) {
    std::cerr << "note: " << reduction.reason << "\nnote: " << reduction.rows
              << " rows are evaluated at once from now on\n";
  };
  Evaluator evaluator(
      model, dataset.seq_len(), experiment.train.eval_batch_size, device, report_micro_batch);
  const EvaluationResult result = evaluator.evaluate(dataset, progress, answers.logits_sink(0));
  answers.send_continuations(0, model, progress);
  return {
      {{"loss", result.loss}, {"tokens", result.tokens}, {"seconds", steady_seconds() - began}}};
}

worker::Result write_logits(const worker::Request& request, const at::Device& device) {
  if (request.output.empty()) throw Error("logits need 'output', the file to write");
  if (request.evaluation_tokens.empty()) throw Error("logits need 'evaluation_tokens'");
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  const Model model = load_model(request, experiment, device);
  const worker::TokenSource& tokens = request.evaluation_tokens[0];
  const data::Dataset dataset(
      tokens.path, {experiment.train.seq_len, config::RowOrder::sequential, 0, tokens.rows});
  const at::NoGradGuard no_grad;
  const Batch batch = load_batch(dataset, 0, dataset.rows(), device);
  std::vector<at::Tensor> owners;
  const auto views =
      views_of({{"input_ids", batch.inputs}, {"logits", model.logits(batch.inputs)}}, owners);
  const int64_t bytes = weights::write_safetensors(request.output, views);
  return {{{"output", request.output}, {"rows", dataset.rows()}, {"bytes", bytes}}};
}

}  // namespace forge::libtorch
