#pragma once

#include "backends/libtorch/ops/canon_conv/cuda.h"

namespace forge::ops::cuda {

/// y [B, T, I] = swiglu(canon(gate_up)), gate_up [B, T, 2I] the input of `in`.
template <class T>
void canon_swiglu_forward(const CanonInput<T>& in, T* y, cudaStream_t stream);

/// Writes y again, grad_gate_up and, where there are taps, rows of sums [2I, taps].
template <class T>
void canon_swiglu_backward(const CanonInput<T>& in,
                           const T* grad_y,
                           T* y,
                           T* grad_gate_up,
                           const AllocateRows& tap_sums,
                           cudaStream_t stream);

}  // namespace forge::ops::cuda
