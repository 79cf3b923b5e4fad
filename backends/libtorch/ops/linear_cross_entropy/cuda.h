#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// How a row's loss and gradient depend on n = logsumexp(logits) - logits[target].
enum class ZLossKind { none, palm, lingua_code };

/// Some rows of logits, and what becomes of them.
template <class T>
struct LossRows {
  int64_t rows, vocabulary;
  int64_t
      stride;  ///< elements from row to row, a multiple of 8; what is behind the vocabulary is 0
  T* logits;   ///< become their gradient where `gradients`
  const int32_t* targets;
  float* losses;       ///< [rows], written; of an unscored row 0
  const float* count;  ///< what the sum of losses will be divided by
  ZLossKind z_loss;
  float coefficient;
  bool gradients;
};

template <class T>
void loss_rows(const LossRows<T>& in, cudaStream_t stream);

/// count[0] = the number of targets that are scored, 1 where none is.
void count_scored(const int32_t* targets, int64_t rows, float* count, cudaStream_t stream);

/// loss[0] = the sum of losses, in double, divided by count[0].
void mean_loss(
    const float* losses, int64_t rows, const float* count, float* loss, cudaStream_t stream);

/// x *= factor[0]; nothing is read or written where that is one. x is aligned to 16 bytes.
template <class T>
void scale_unless_one(T* x, int64_t count, const float* factor, cudaStream_t stream);

}  // namespace forge::ops::cuda
