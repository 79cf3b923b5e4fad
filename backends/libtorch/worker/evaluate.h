#pragma once

#include <functional>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/worker/halving.h"
#include "backends/libtorch/worker/step_graph.h"
#include "backends/libtorch/worker/uploader.h"
#include "core/data/dataset.h"

namespace forge::worker {

struct EvaluationResult {
  double loss = 0;     ///< token-weighted mean negative log likelihood
  int64_t tokens = 0;  ///< scored
};

/// Told of rows first_row … : logits [B, T, V], int32 targets [B, T].
using RowSink =
    std::function<void(int64_t first_row, const at::Tensor& logits, const at::Tensor& targets)>;

/// Evaluates a model on the rows of a data set, as often as one likes. On a GPU the work on a batch
/// is recorded and replayed, and the host waits for the device once, at the end.
class Evaluator {
 public:
  /// The model and the data set outlive it.
  Evaluator(const LlamaCanon& model,
            const data::Dataset& dataset,
            int batch_size,
            const at::Device& device,
            HalvingSink on_halving = {});

  int batch_size() const { return batch_size_; }
  void set_batch_size(int rows);

  /// Mean loss over all rows, in order, batch_size rows at a time. Where memory runs out, it is
  /// half as many from then on; throws c10::OutOfMemoryError where not even one row fits.
  /// `progress` is called with the fraction done after each batch. Logits are made whole only where
  /// `on_rows` is there to see them, and then nothing is recorded.
  EvaluationResult evaluate(const std::function<void(double)>& progress,
                            const RowSink& on_rows = {});

 private:
  /// Evaluates rows from `row` on and returns how many of their targets are scored.
  int64_t add_rows(int64_t row, int count, const RowSink& on_rows);
  Batch load(int64_t row, int count);
  void add(const Batch& batch);

  const LlamaCanon& model_;
  const data::Dataset& dataset_;
  int batch_size_;
  at::Device device_;
  HalvingSink on_halving_;
  Uploader uploader_;  ///< of whole batches: a recorded one lies in the same memory each time
  StepGraph graph_;    ///< of a whole batch
  at::Tensor sum_;     ///< of the losses, float64, on the device
};

}  // namespace forge::worker
