#pragma once

#include <cstdint>

#include "backends/libtorch/ops/common/simd.h"

/// Loops of SwiGLU over one token, gate and up of `width` numbers one behind the other.
namespace forge::ops {

template <class T, class Out>
FORGE_INLINE void swiglu_token(int64_t width, const T* gate_up, Out* __restrict y) {
  const T *gate = gate_up, *up = gate_up + width;
  for (int64_t i = 0; i < width; ++i) {
    y[i] = rounded<Out>(gate[i] / (1 + fast_exp(-gate[i])) * up[i]);
  }
}

/// With s = sigmoid(gate): d silu = s (1 + gate (1 - s)). The gradient may lie where gate_up does.
template <class T>
FORGE_INLINE void swiglu_token_gradient(int64_t width,
                                        const T* gate_up,
                                        const T* grad_y,
                                        T* grad_gate_up) {
  const T *gate = gate_up, *up = gate_up + width;
  T *grad_gate = grad_gate_up, *grad_up = grad_gate_up + width;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const T g = gate[i], u = up[i], s = 1 / (1 + fast_exp(-g));
    grad_gate[i] = grad_y[i] * u * (s * (1 + g * (1 - s)));
    grad_up[i] = grad_y[i] * (g * s);
  }
}

/// The same, and y again.
template <class T, class Out>
FORGE_INLINE void swiglu_token_both(
    int64_t width, const T* gate_up, const T* grad_y, T* grad_gate_up, Out* y) {
  const T *gate = gate_up, *up = gate_up + width;
  T *grad_gate = grad_gate_up, *grad_up = grad_gate_up + width;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const T g = gate[i], u = up[i], s = 1 / (1 + fast_exp(-g));
    y[i] = rounded<Out>(g * s * u);
    grad_gate[i] = grad_y[i] * u * (s * (1 + g * (1 - s)));
    grad_up[i] = grad_y[i] * (g * s);
  }
}

}  // namespace forge::ops
