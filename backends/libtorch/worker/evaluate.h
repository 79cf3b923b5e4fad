#pragma once

#include <functional>

#include "backends/libtorch/model/llama_canon.h"
#include "core/data/dataset.h"

namespace forge::worker {

struct EvaluationResult {
  double loss = 0;     ///< token-weighted mean negative log likelihood
  int64_t tokens = 0;  ///< scored
};

/// Told of rows first_row … : logits [B, T, V], int32 targets [B, T].
using RowSink =
    std::function<void(int64_t first_row, const at::Tensor& logits, const at::Tensor& targets)>;

/// Mean loss over rows 0 … rows-1 of the data set, in order, `batch_size` rows at a time.
/// `progress` is called with the fraction done after each batch.
EvaluationResult evaluate(const LlamaCanon& model,
                          const data::Dataset& dataset,
                          int64_t rows,
                          int batch_size,
                          const at::Device& device,
                          const std::function<void(double)>& progress,
                          const RowSink& on_rows);

}  // namespace forge::worker
