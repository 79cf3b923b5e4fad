#pragma once

#include <cmath>
#include <cstdint>

#include "backends/libtorch/ops/common/simd.h"

/// Loops of RMSNorm over one token.
namespace forge::ops {

/// 1 / sqrt(mean(x^2) + eps)
template <class T>
FORGE_INLINE T rms_scale(int64_t channels, T eps, const T* x) {
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t c = 0; c < channels; ++c) squares += x[c] * x[c];
  return 1 / std::sqrt(squares / static_cast<T>(channels) + eps);
}

template <class T, class Out>
FORGE_INLINE void rms_norm_token(int64_t channels, T scale, const T* x, const T* w, Out* y) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) y[c] = rounded<Out>(w[c] * (x[c] * scale));
}

/// grad_x = s * (w*g - n * mean(w*g*n)) with n = x*s the normalised input; sums[c] += g*n.
template <class T>
FORGE_INLINE void rms_norm_token_gradient(
    int64_t channels, T scale, const T* x, const T* w, const T* grad_y, T* grad_x, T* sums) {
  T dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t c = 0; c < channels; ++c) dot += w[c] * grad_y[c] * x[c];
  const T shift = dot * scale * scale / static_cast<T>(channels);
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) {
    sums[c] += grad_y[c] * (x[c] * scale);
    grad_x[c] = scale * (w[c] * grad_y[c] - x[c] * shift);
  }
}

}  // namespace forge::ops
