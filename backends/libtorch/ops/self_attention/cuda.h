#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// How heads lie in a joint projection [q | k | v] and which of them turn.
struct Heads {
  int turning, all;  ///< heads of q and k; of q, k and v
  int head_dim;
  int rope_dim;  ///< channels of a turning head that turn; 0: none
  bool interleaved;
  const float *cos, *sin;  ///< [positions, rope_dim / 2]
};

/// Whether the kernels' packs fit the pairs of such heads.
bool heads_fit(const Heads& heads);

/// RMSNorm of turning heads, between the convolution and the rotation; q null: none.
struct HeadNorms {
  int query_heads;
  const float *q, *k;  ///< [head_dim]
  float eps;
  bool round_first;  ///< normalised values are rounded to T before they are weighted
};

/// Whether the threads that share such a head can add up its channels.
bool heads_can_be_normalised(const Heads& heads);

/// Arguments of the kernels: x [B, T, channels] of T. Without turning heads this is the convolution
/// alone, of any channels.
template <class T>
struct PrepareHeads {
  Sequences sequences;  ///< of x
  int taps;
  bool residual;
  const T* x;
  const float* weights;  ///< [channels, taps]
  Heads heads;
  HeadNorms norms;
};

template <class T>
void prepare_heads(const PrepareHeads<T>& in, T* y, cudaStream_t stream);

/// Gradients of y, head by head: of queries [B, T, q_channels], keys and values
/// [B, T, kv_channels]. With q_channels all channels, grad_k and grad_v are not read.
template <class T>
struct HeadGradientsOf {
  const T *q, *k, *v;
  int64_t q_channels, kv_channels;
};

/// Rows of the sums below.
template <class T>
int64_t prepare_heads_partial_rows(const PrepareHeads<T>& in);

/// Writes rows of sums for the gradients of weights: [channels, taps] where there are taps, and
/// [channels] where there are norms.
template <class T>
void prepare_heads_backward(const PrepareHeads<T>& in,
                            const HeadGradientsOf<T>& grad_y,
                            T* grad_x,
                            float* tap_partial,
                            float* norm_partial,
                            cudaStream_t stream);

}  // namespace forge::ops::cuda
