#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// Arguments of gated_norm's kernels, over tokens of C channels. C, D and the channels of a head
/// are multiples of 8. All but the gate and its gradient are contiguous.
template <class T>
struct GatedNormPass {
  int64_t tokens, channels;
  int width;            ///< D
  int head_width;       ///< of the skip
  int64_t gate_stride;  ///< elements from token to token
  bool gate_first;
  float eps;
  const T *o, *gate, *skip;  ///< skip: x, or null
  const float *weight, *bias,
      *factor;  ///< [D]; [C] or null; [C / head_width] where there is a skip
  T* y;         ///< in the backward pass null if it is not asked for
};

/// Of the backward pass alone.
template <class T>
struct GatedNormGradient {
  const T* y;
  int64_t gate_stride;
  T *o, *gate, *skip;  ///< are written; skip null where there is none
};

/// Whether the kernels take C channels of which D are normed together: a block has threads for
/// them.
bool gated_norm_fits(int64_t channels, int64_t width);

template <class T>
void gated_norm_forward(const GatedNormPass<T>& in, cudaStream_t stream);

/// A row of sums has D for the weight, C for the bias where there is one, and one for each head's
/// factor.
template <class T>
void gated_norm_backward(const GatedNormPass<T>& in,
                         const GatedNormGradient<T>& grad,
                         const AllocateRows& sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
