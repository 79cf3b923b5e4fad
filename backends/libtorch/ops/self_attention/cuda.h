#pragma once

#include "backends/libtorch/ops/canon_conv/cuda.h"

namespace forge::ops::cuda {

/// How heads lie in a joint projection [q | k | v], and the rotation of those of q and k.
struct HeadShape {
  int rotated, all;  ///< heads of q and k; of q, k and v
  int head_dim;
  int rope_dim;  ///< rotated channels of such a head; 0: none
  bool interleaved;
  const float *cos, *sin;  ///< [positions, rope_dim / 2]
};

/// Whether the kernels' vectors fit the rotated pairs of such heads.
bool rope_is_supported(const HeadShape& heads);

/// RMSNorm of the heads of q and k, between the convolution and the rotation; q null: none.
struct HeadNormArgs {
  int query_heads;
  const float *q, *k;  ///< [head_dim]
  float eps;
  bool round_before_weight;  ///< as RmsNormOptions
};

/// Whether the threads that share such a head can add up its channels.
bool head_norm_is_supported(const HeadShape& heads);

/// Arguments of the kernels; the channels of the input are those of all heads.
template <class T>
struct CanonRope {
  CanonInput<T> canon;
  HeadShape heads;
  HeadNormArgs norms;
};

/// y [B, T, channels] = rope(head_norm(canon(x))) of queries and keys, canon(x) of values.
template <class T>
void canon_rope_forward(const CanonRope<T>& in, T* y, cudaStream_t stream);

/// Gradients of y, head by head: of queries [B, T, q_channels], of keys and of values
/// [B, T, kv_channels].
template <class T>
struct HeadGradientArgs {
  const T *q, *k, *v;
  int64_t q_channels, kv_channels;
};

/// Writes grad_x, and rows of sums for the gradients of weights: [channels, taps] where there are
/// taps, and [channels] where there are norms.
template <class T>
void canon_rope_backward(const CanonRope<T>& in,
                         const HeadGradientArgs<T>& grad_y,
                         T* grad_x,
                         const AllocateRows& tap_sums,
                         const AllocateRows& norm_sums,
                         cudaStream_t stream);

}  // namespace forge::ops::cuda
