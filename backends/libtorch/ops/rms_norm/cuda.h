#pragma once

#include "backends/libtorch/ops/canon_conv/cuda.h"

namespace forge::ops::cuda {

/// Most channels of norm_canon's kernels.
constexpr int most_norm_channels = 4096;

/// Arguments of norm_canon's kernels; C is a multiple of 8. Without a convolution tokens may lie
/// apart, in y and all gradients as in x.
template <class T>
struct NormCanon {
  Sequences sequences;       ///< of x
  int64_t stride;            ///< elements from token to token
  int taps;                  ///< 0: no convolution
  bool residual;             ///< of the convolution
  bool round_before_weight;  ///< as RmsNormOptions
  float eps;
  const T* x;
  const float* norm_weights;  ///< [C]
  const float* tap_weights;   ///< [C, taps]
};

/// y = canon(rms_norm(x)). Writes 1 / rms of each token of x to scales [B, T].
template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, float* scales, cudaStream_t stream);

template <class T>
struct NormCanonBackward {
  const float* scales;  ///< of norm_canon_forward
  const T* grad_y;
  const T* grad_residual;  ///< is added to grad_x; or null
  T* y;                    ///< is written again; or null
  T* grad_x;               ///< is written
};

/// A row of sums has C for norm_weights and C taps for the convolution's.
template <class T>
void norm_canon_backward(const NormCanon<T>& in,
                         const NormCanonBackward<T>& pass,
                         const AllocateRows& sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
