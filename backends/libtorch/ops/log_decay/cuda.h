#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// Arguments of log_decay's kernels: x [N, C] and bias [C], C a multiple of 8, contiguous.
template <class T>
struct LogDecayPass {
  int64_t tokens, channels;
  float normalizer;
  const T* x;
  const float* bias;
};

/// log_decay [N, C] = log(sigmoid(x + bias)) / normalizer
template <class T>
void log_decay_forward(const LogDecayPass<T>& in, float* log_decay, cudaStream_t stream);

/// Writes grad_x, and rows of sums [C] for the bias.
template <class T>
void log_decay_backward(const LogDecayPass<T>& in,
                        const float* grad_log_decay,
                        T* grad_x,
                        const AllocateRows& sums,
                        cudaStream_t stream);

/// Arguments of head_gates' kernels, over tokens of at most 256 heads: parts of a projection.
template <class T>
struct HeadGatesPass {
  int64_t tokens, heads;
  int64_t step_stride, write_stride;  ///< elements from token to token
  const T *step, *write;              ///< write: or null
  const float *a_log, *step_bias;     ///< [H]
};

/// log_decay and beta [N, H]
template <class T>
void head_gates_forward(const HeadGatesPass<T>& in,
                        float* log_decay,
                        float* beta,
                        cudaStream_t stream);

/// Writes grad_step and, where there is one, grad_write, contiguous [N, H], and rows of sums: [H]
/// for a_log, then [H] for step_bias.
template <class T>
void head_gates_backward(const HeadGatesPass<T>& in,
                         const float* grad_log_decay,
                         const float* grad_beta,
                         T* grad_step,
                         T* grad_write,
                         const AllocateRows& sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
