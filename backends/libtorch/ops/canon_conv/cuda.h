#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// Sequences of tokens [batch, length, channels], contiguous.
struct Sequences {
  int64_t batch, length, channels;
  const int32_t* doc_ids;  ///< [batch, length], or null: each row is one document
};

/// A Canon layer and its input, as all kernels that hold a convolution take them.
template <class T>
struct CanonInput {
  Sequences sequences;   ///< of x
  int taps;              ///< K in 2..4, or 0: no convolution
  bool residual;         ///< adds x: one more of the current token's tap
  const T* x;            ///< [batch, length, channels]
  const float* weights;  ///< [channels, taps]; the last tap multiplies the current token
};

/// y = canon(x), without activation; channels are a multiple of 8 and taps are not 0.
template <class T>
void canon_conv_forward(const CanonInput<T>& in, T* y, cudaStream_t stream);

/// Writes grad_x, and rows of sums [channels, taps] for the gradient of the weights.
template <class T>
void canon_conv_backward(const CanonInput<T>& in,
                         const T* grad_y,
                         T* grad_x,
                         const AllocateRows& tap_sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
