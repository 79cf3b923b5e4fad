#pragma once

#include <cmath>

#include "backends/libtorch/ops/common/simd.h"

/// Activations of single numbers, written so that loops over them vectorise.
namespace forge::ops {

template <class T>
FORGE_INLINE T sigmoid(T x) {
  return 1 / (1 + fast_exp(-x));
}

/// silu and its derivative: x s and s (1 + x (1 - s)) with s = sigmoid(x).
template <class T>
struct Silu {
  T value, slope;
};
template <class T>
FORGE_INLINE Silu<T> silu(T x) {
  const T s = sigmoid(x);
  return {x * s, s * (1 + x * (1 - s))};
}

/// log(1 + y) for y from 0 to 1, by 2 atanh(y / (2 + y)); relative error below 2e-7.
FORGE_INLINE float log_of_one_plus(float y) {
  const float s = y / (2.0f + y), z = s * s;
  float p = 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  return 2.0f * s * (p * z + 1.0f);
}
FORGE_INLINE double log_of_one_plus(double y) { return std::log1p(y); }

/// log(sigmoid(x)), exact in both tails.
template <class T>
FORGE_INLINE T log_sigmoid(T x) {
  const T low = x < 0 ? x : T(0), size = x < 0 ? -x : x;
  return low - log_of_one_plus(fast_exp(-size));
}

}  // namespace forge::ops
