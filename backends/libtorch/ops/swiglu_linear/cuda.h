#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// Arguments of canon_swiglu's kernels: gate_up [B, T, 2I] of T, y [B, T, I].
template <class T>
struct CanonSwiGlu {
  Sequences sequences;  ///< of gate_up
  int taps;
  bool residual;
  const T* gate_up;
  const float* weights;  ///< [2I, taps]
};

template <class T>
void canon_swiglu_forward(const CanonSwiGlu<T>& in, T* y, cudaStream_t stream);

/// Rows of 2I * taps floats that canon_swiglu_backward needs for `partial`.
template <class T>
int64_t canon_swiglu_partial_rows(const CanonSwiGlu<T>& in);

template <class T>
void canon_swiglu_backward(const CanonSwiGlu<T>& in,
                           const T* grad_y,
                           T* y,
                           T* grad_gate_up,
                           float* partial,
                           cudaStream_t stream);

}  // namespace forge::ops::cuda
