#include "backends/libtorch/worker/evaluate.h"

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"

namespace forge::worker {

Evaluator::Evaluator(const LlamaCanon& model,
                     const data::Dataset& dataset,
                     int batch_size,
                     const at::Device& device)
    : model_(model),
      dataset_(dataset),
      batch_size_(batch_size),
      device_(device),
      uploader_(device, dataset.seq_len()),
      graph_(device),
      sum_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))) {}

EvaluationResult Evaluator::evaluate(const std::function<void(double)>& progress,
                                     const RowSink& on_rows) {
  const at::NoGradGuard no_grad;
  const int64_t rows = dataset_.rows();
  int64_t tokens = 0;
  sum_.zero_();
  for (int64_t row = 0; row < rows; row += batch_size_) {
    const int count = static_cast<int>(std::min<int64_t>(batch_size_, rows - row));
    const Batch batch = load(row, count);
    if (on_rows) {
      const at::Tensor logits = model_.logits(batch.inputs, batch.documents);
      sum_ += ops::negative_log_likelihood_sum(logits.flatten(0, 1), batch.targets.flatten());
      on_rows(row, logits, batch.targets);
    } else {
      add(batch);
    }
    tokens += batch.targets.numel() - batch.unscored;
    progress(double(row + count) / double(rows));
  }
  const double sum = sum_.item<double>();
  return {tokens > 0 ? sum / double(tokens) : 0, tokens};
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
