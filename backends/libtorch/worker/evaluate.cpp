#include "backends/libtorch/worker/evaluate.h"

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"

namespace forge::worker {

Evaluator::Evaluator(const LlamaCanon& model,
                     const data::Dataset& dataset,
                     int batch_size,
                     const at::Device& device,
                     HalvingSink on_halving)
    : model_(model),
      dataset_(dataset),
      batch_size_(batch_size),
      device_(device),
      on_halving_(std::move(on_halving)),
      uploader_(device, dataset.seq_len()),
      graph_(device),
      sum_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

void Evaluator::set_batch_size(int rows) {
  batch_size_ = rows;
  graph_.begin_anew();
}

EvaluationResult Evaluator::evaluate(const std::function<void(double)>& progress,
                                     const RowSink& on_rows) {
  const at::NoGradGuard no_grad;
  const int64_t rows = dataset_.rows();
  int64_t tokens = 0, row = 0;
  sum_.zero_();
  while (row < rows) {
    const int count = static_cast<int>(std::min<int64_t>(batch_size_, rows - row));
    const auto memory_ran_out = what_ran_out([&] { tokens += add_rows(row, count, on_rows); });
    if (!memory_ran_out) {
      row += count;
      progress(double(row) / double(rows));
      continue;
    }
    set_batch_size(half_of(count, *memory_ran_out, device_));
    if (on_halving_) on_halving_({batch_size_, *memory_ran_out});
    if (on_rows) continue;  // what was answered is not taken back
    // From the beginning, so that the sum is the one that a later evaluation would give.
    sum_.zero_();
    tokens = row = 0;
  }
  const double sum = sum_.item<double>();
  return {tokens > 0 ? sum / double(tokens) : 0, tokens};
}

int64_t Evaluator::add_rows(int64_t row, int count, const RowSink& on_rows) {
  const Batch batch = load(row, count);
  if (on_rows) {
    const at::Tensor logits = model_.logits(batch.inputs, batch.documents);
    const at::Tensor sum =
        ops::negative_log_likelihood_sum(logits.flatten(0, 1), batch.targets.flatten());
    on_rows(row, logits, batch.targets);
    sum_ += sum;
  } else {
    add(batch);
  }
  return batch.targets.numel() - batch.unscored;
}

Batch Evaluator::load(int64_t row, int count) {
  if (count < batch_size_) return load_batch(dataset_, row, count, device_);
  return uploader_.upload(load_rows(dataset_, row, count));
}

void Evaluator::add(const Batch& batch) {
  const auto work = [&] { sum_ += model_.loss_sum(batch.inputs, batch.documents, batch.targets); };
  batch.inputs.size(0) == batch_size_ ? graph_.run(work, batch.documents.starts) : work();
}

}  // namespace forge::worker
