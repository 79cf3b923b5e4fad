#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// Most channels of norm_canon's kernels.
constexpr int most_norm_channels = 4096;

/// Arguments of norm_canon's kernels: x [B, T, C] of T, C a multiple of 8. Without a convolution
/// tokens may lie apart, in y and all gradients as in x.
template <class T>
struct NormCanon {
  Sequences sequences;  ///< of x
  int64_t stride;       ///< elements from token to token
  int taps;             ///< 0: no convolution
  bool residual;        ///< of the convolution
  bool round_first;     ///< normalised values are rounded to T before they are weighted
  float eps;
  const T* x;
  const float* norm_weights;  ///< [C]
  const float* tap_weights;   ///< [C, taps]
};

/// Writes what each token of x is multiplied by to scales [B, T].
template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, float* scales, cudaStream_t stream);

/// Rows of C * (1 + taps) floats that norm_canon_backward needs for `partial`: a row holds sums for
/// norm_weights, then those for tap_weights.
template <class T>
int64_t norm_canon_partial_rows(const NormCanon<T>& in);

/// scales are those of norm_canon_forward. y is what it gave, written again, and may be null as
/// grad_residual may.
/// norm_canon_partial_rows(…) rows of `partial` are written.
template <class T>
void norm_canon_backward(const NormCanon<T>& in,
                         const float* scales,
                         const T* grad_y,
                         const T* grad_residual,
                         T* y,
                         T* grad_x,
                         float* partial,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
