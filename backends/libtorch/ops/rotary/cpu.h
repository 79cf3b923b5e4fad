#pragma once

#include <cstdint>

#include "backends/libtorch/ops/common/simd.h"

namespace forge::ops {

/// Rotates one head of `width` channels by the angles of one position (sign +1) or their negatives
/// (-1): (a, b) becomes (a cos - b sin, a sin + b cos). The result may lie where x does.
template <class T, class Out>
FORGE_INLINE void rotate_head(const T* x,
                              const T* cos,
                              const T* sin,
                              int64_t half,
                              int64_t width,
                              bool interleaved,
                              T sign,
                              Out* y) {
  const int64_t a = interleaved ? 2 : 1;     // distance between pairs
  const int64_t b = interleaved ? 1 : half;  // distance within a pair
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const T c = cos[i], s = sign * sin[i], first = x[a * i], second = x[a * i + b];
    y[a * i] = rounded<Out>(first * c - second * s);
    y[a * i + b] = rounded<Out>(first * s + second * c);
  }
  if (static_cast<const void*>(y) == x) return;
  for (int64_t i = 2 * half; i < width; ++i) y[i] = rounded<Out>(x[i]);
}

}  // namespace forge::ops
