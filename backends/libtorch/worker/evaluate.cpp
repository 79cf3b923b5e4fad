#include "backends/libtorch/worker/evaluate.h"

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"

namespace forge::worker {

EvaluationResult evaluate(const LlamaCanon& model,
                          const data::Dataset& dataset,
                          int64_t rows,
                          int batch_size,
                          const at::Device& device,
                          const std::function<void(double)>& progress,
                          const RowSink& on_rows) {
  const at::NoGradGuard no_grad;
  double sum = 0;
  int64_t tokens = 0;
  for (int64_t row = 0; row < rows; row += batch_size) {
    const int count = static_cast<int>(std::min<int64_t>(batch_size, rows - row));
    const Batch batch = load_batch(dataset, row, count, device);
    const at::Tensor logits = model.logits(batch.inputs, batch.documents);
    const at::Tensor targets = batch.targets.view({-1});
    sum += ops::negative_log_likelihood_sum(logits.view({-1, logits.size(-1)}), targets);
    tokens += targets.ne(ops::ignored_target).sum().item<int64_t>();
    on_rows(row, logits, batch.targets);
    progress(double(row + count) / double(rows));
  }
  return {tokens > 0 ? sum / double(tokens) : 0, tokens};
}

}  // namespace forge::worker
