#include "backends/libtorch/ops/self_attention/cuda.h"

#include "backends/libtorch/ops/canon_conv/cuda.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of each of a thread's two vectors. The backward pass of a convolution needs more
// registers for each.
constexpr int forward_width = 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 4 : 2;
// Blocks that a multiprocessor has registers for.
template <int taps>
constexpr int backward_blocks = taps == 0 ? 1 : 4;

/// A thread's two vectors, and the rotated channel at which their angles begin; -1: they are not
/// rotated.
struct RotaryPair {
  ChannelPair channels;
  int angle;
};

/// Vectors that are rotated against each other belong to one thread: the same part of both halves
/// of a head's rotated channels or, with interleaved pairs, any two vectors. The rest of a head,
/// and heads that are not rotated, are halved as well. With norms both vectors belong to one head.
template <int width, bool norms>
__device__ __forceinline__ RotaryPair rotary_pair(int lane,
                                                  const HeadShape& heads,
                                                  int64_t channels) {
  const int64_t index = int64_t{blockIdx.x} * pairs_of_block + lane;
  if (index >= channels / 2 / width) return {{-1, -1}, -1};
  if (!norms && heads.rope_dim == 0) return {{index * width, channels / 2 + index * width}, -1};
  const int per_head = heads.head_dim / 2 / width;
  const int head = static_cast<int>(index) / per_head;
  const int64_t base = int64_t{head} * heads.head_dim;
  const int within = static_cast<int>(index) % per_head * width;
  const int half = heads.rope_dim / 2;
  if (head >= heads.rotated) return {{base + within, base + heads.head_dim / 2 + within}, -1};
  if (within < half) return {{base + within, base + half + within}, within};
  const int rest = within - half, half_rest = (heads.head_dim - heads.rope_dim) / 2;
  return {{base + heads.rope_dim + rest, base + heads.rope_dim + half_rest + rest}, -1};
}

/// cos and sin of the angles p θ^(-2i/r) of a thread's channels at one position p: of the pairs
/// that its two vectors make or, interleaved, of those within its first vector, then its second.
template <int width>
struct Angles {
  float cos[width], sin[width];

  __device__ __forceinline__ void load_from(const HeadShape& heads, int angle, int position) {
    const int half = heads.rope_dim / 2;
    const float* cos_row = heads.cos + int64_t{position} * half;
    const float* sin_row = heads.sin + int64_t{position} * half;
    if (!heads.interleaved) {
      load_input(cos_row + angle, cos);
      load_input(sin_row + angle, sin);
      return;
    }
    // Vectors a and b begin at channels `angle` and half + angle.
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const bool second = j >= width / 2;
      const int pair = (angle + (second ? half : 0)) / 2 + j - (second ? width / 2 : 0);
      cos[j] = __ldg(cos_row + pair);
      sin[j] = __ldg(sin_row + pair);
    }
  }

  /// Rotates by the angles (sign +1), or by their negatives (-1) for the backward pass.
  __device__ __forceinline__ void rotate(bool interleaved,
                                         float sign,
                                         float (&a)[width],
                                         float (&b)[width]) const {
    if (!interleaved) {
#pragma unroll
      for (int j = 0; j < width; ++j) rotate(j, sign, a[j], b[j]);
      return;
    }
#pragma unroll
    for (int j = 0; j < width / 2; ++j) {
      rotate(j, sign, a[2 * j], a[2 * j + 1]);
      rotate(width / 2 + j, sign, b[2 * j], b[2 * j + 1]);
    }
  }

 private:
  __device__ __forceinline__ void rotate(int j, float sign, float& first, float& second) const {
    const float x = first, y = second, s = sign * sin[j];
    first = x * cos[j] - y * s;
    second = x * s + y * cos[j];
  }
};

/// The norm of the head that a thread's two vectors belong to; a head lies in neighbouring lanes.
template <class T, int width, bool enabled>
struct HeadNorm {
  float weights[2][width];
  int lanes = 0;  ///< that share the head; 0: it is not normalised
  float share = 0, eps = 0;
  bool round_before_weight = false;

  __device__ __forceinline__ void load_weights(const HeadNormArgs& norms,
                                               const HeadShape& heads,
                                               const ChannelPair& pair) {
    if constexpr (enabled) {
      const int head = static_cast<int>(pair.a / heads.head_dim);
      if (head >= heads.rotated) return;
      const float* from = head < norms.query_heads ? norms.q : norms.k;
      load(from + pair.a % heads.head_dim, weights[0]);
      load(from + pair.b % heads.head_dim, weights[1]);
      lanes = heads.head_dim / 2 / width;
      share = 1 / static_cast<float>(heads.head_dim);
      eps = norms.eps;
      round_before_weight = norms.round_before_weight;
    }
  }

  /// The mean over the head of what the threads give.
  __device__ __forceinline__ float mean(float sum) const {
    return sum_of_lanes(sum, lanes, static_cast<int>(threadIdx.x)) * share;
  }
  __device__ __forceinline__ float scale_of(const float (&a)[width],
                                            const float (&b)[width]) const {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < width; ++j) squares += a[j] * a[j] + b[j] * b[j];
    return rsqrtf(mean(squares) + eps);
  }

  __device__ __forceinline__ void apply(float (&a)[width], float (&b)[width]) const {
    if (!enabled || lanes == 0) return;
    const float scale = scale_of(a, b);
    normalise<T>(a, scale, round_before_weight);
    normalise<T>(b, scale, round_before_weight);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      a[j] *= weights[0][j];
      b[j] *= weights[1][j];
    }
  }

  /// The gradients of the norm's inputs a, b, in place of those of its outputs. With s = 1 / rms:
  ///   grad_x = s w grad_y - x s^3 mean(w x grad_y).
  /// Adds n grad_y to the sums for the weights' gradients, if `counts`.
  __device__ __forceinline__ void backward(const float (&a)[width],
                                           const float (&b)[width],
                                           float (&grad_a)[width],
                                           float (&grad_b)[width],
                                           bool counts,
                                           PairTaps<enabled ? 1 : 0, width>& sums) const {
    if (!enabled || lanes == 0) return;
    const float scale = scale_of(a, b);
    float product = 0;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      product += a[j] * weights[0][j] * grad_a[j] + b[j] * weights[1][j] * grad_b[j];
    }
    const float factor = mean(product) * scale * scale * scale;
    float normal_a[width], normal_b[width];
#pragma unroll
    for (int j = 0; j < width; ++j) {
      normal_a[j] = a[j];
      normal_b[j] = b[j];
    }
    normalise<T>(normal_a, scale, round_before_weight);
    normalise<T>(normal_b, scale, round_before_weight);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (counts) {
        sums.side[0][0][j] += grad_a[j] * normal_a[j];
        sums.side[1][0][j] += grad_b[j] * normal_b[j];
      }
      grad_a[j] = scale * weights[0][j] * grad_a[j] - factor * a[j];
      grad_b[j] = scale * weights[1][j] * grad_b[j] - factor * b[j];
    }
  }
};

/// y[t] = R(t) norm(canon(x)[t]) of heads of queries and keys, canon(x)[t] of those of values; norm
/// is RMSNorm over a head, where there are norms, and R(t) rotates pairs by t θ^(-2i/r).
/// Grid, block: as of all kernels over channel pairs (canon_conv/cuda.cuh). Shared memory: none;
/// a head's sum of squares goes over the lanes of a warp.
/// Moves x and y once: 2 B T (H + 2G) D elements. cos and sin, T r floats, stay in the cache.
template <class T, int taps, bool documents, bool norms>
__global__ void __launch_bounds__(pair_threads)
    forward_kernel(CanonRope<T> in, TimeTiles tiles, T* y) {
  constexpr int width = forward_width, halo = halo_of<taps>, ring = ring_size<taps>;
  const Sequences& s = in.canon.sequences;
  const RotaryPair rotary = rotary_pair<width, norms>(threadIdx.x, in.heads, s.channels);
  const ChannelPair pair = rotary.channels;
  if (pair.a < 0) return;
  PairTaps<taps, width> w;
  w.load(in.canon.weights, in.canon.residual, pair);
  HeadNorm<T, width, norms> norm;
  norm.load_weights(in.norms, in.heads, pair);
  for_each_tile(s, tiles, [&](const TimeTile& tile) {
    const T* x = in.canon.x + tile.first_token * s.channels;
    T* out = y + tile.first_token * s.channels;
    Prefetcher<T, ring, width> next_a, next_b;
    float x_a[ring][width], x_b[ring][width];
    DocumentWindow<ring, documents> docs;
    next_a.begin(x + pair.a, s.channels, tile.begin, tile.end);
    next_b.begin(x + pair.b, s.channels, tile.begin, tile.end);
    load_halo<halo>(x + pair.a, s.channels, tile.begin, x_a);
    load_halo<halo>(x + pair.b, s.channels, tile.begin, x_b);
    docs.begin(s, tile, tile.begin);
    for (int t = tile.begin; t < tile.end; t += ring) {
      Angles<width> angles[ring];
      if (rotary.angle >= 0) {
#pragma unroll
        for (int i = 0; i < ring; ++i)
          angles[i].load_from(in.heads, rotary.angle, min(t + i, tile.end - 1));
      }
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        float a[width], b[width];
        next_a.next(i, x_a[i]);
        next_b.next(i, x_b[i]);
        docs.load(s, tile, t + i, i);
        convolve<taps>(x_a, docs, w.side[0], i, a);
        convolve<taps>(x_b, docs, w.side[1], i, b);
        norm.apply(a, b);
        if (rotary.angle >= 0) angles[i].rotate(in.heads.interleaved, 1, a, b);
        if (t + i >= tile.end) continue;
        store(out + (t + i) * s.channels + pair.a, a);
        store(out + (t + i) * s.channels + pair.b, b);
      }
    }
  });
}

/// Where the gradient of a channel lies.
template <class T>
struct ChannelGradient {
  const T* first;  ///< of the batch's first token
  int64_t stride;  ///< from token to token
};

template <class T>
__device__ __forceinline__ ChannelGradient<T> gradient_of(const HeadGradientArgs<T>& grad,
                                                          int64_t channel) {
  if (channel < grad.q_channels) return {grad.q + channel, grad.q_channels};
  channel -= grad.q_channels;
  if (channel < grad.kv_channels) return {grad.k + channel, grad.kv_channels};
  return {grad.v + channel - grad.kv_channels, grad.kv_channels};
}

/// With [R(t), norm, canon] as above, for queries and keys:
///   g[t] = norm'(canon(x)[t]) R(-t) grad_y[t],  grad_x[t] = sum over j of w[K - 1 - j] g[t + j]
///   [+ g[t]];  of values g = grad_y.
/// The norm's input is computed again. Each block writes its sums for the gradients of taps and
/// norms.
/// Grid, block: as above. Shared memory: that of write_tap_sums for taps and for norms, at most
/// 10 KiB.
/// Moves grad_y and grad_x and, with taps or norms, x once: 3 B T (H + 2G) D elements, and a row of
/// 4 (H + 2G) D (K + 1) bytes for each block.
template <class T, int taps, bool documents, bool norms>
__global__ void __launch_bounds__(pair_threads, backward_blocks<taps>)
    backward_kernel(CanonRope<T> in,
                    TimeTiles tiles,
                    HeadGradientArgs<T> grad_y,
                    T* grad_x,
                    float* tap_partial,
                    float* norm_partial) {
  constexpr int width = backward_width<taps>, halo = halo_of<taps>, ring = ring_size<taps>;
  // The taps' gradients read the tile's tokens alone, the norms' their halo too.
  constexpr bool needs_x = taps > 0 || norms;
  constexpr int lag = norms ? 0 : halo;
  const Sequences& s = in.canon.sequences;
  const RotaryPair rotary = rotary_pair<width, norms>(threadIdx.x, in.heads, s.channels);
  const ChannelPair pair = rotary.channels;
  PairTaps<taps, width> w, sums;
  PairTaps<norms ? 1 : 0, width> norm_sums;  // added up as taps are
  sums.clear();
  norm_sums.clear();
  if (pair.a >= 0) {
    w.load(in.canon.weights, in.canon.residual, pair);
    HeadNorm<T, width, norms> norm;
    norm.load_weights(in.norms, in.heads, pair);
    const ChannelGradient<T> upstream_a = gradient_of(grad_y, pair.a);
    const ChannelGradient<T> upstream_b = gradient_of(grad_y, pair.b);
    for_each_tile(s, tiles, [&](const TimeTile& tile) {
      const T* x = in.canon.x + tile.first_token * s.channels;
      T* out = grad_x + tile.first_token * s.channels;
      Prefetcher<T, ring, width> next_a, next_b, upstream[2];
      // Inputs, index i being token t + i - lag, and gradients.
      float x_a[ring][width], x_b[ring][width], grad_a[ring][width], grad_b[ring][width];
      DocumentWindow<ring, documents> docs;
      const int last = min(tile.end + halo, tile.length);
      if constexpr (needs_x) {
        const int first = tile.begin - lag, end = norms ? last : tile.end;
        next_a.begin(x + pair.a, s.channels, first, end);
        next_b.begin(x + pair.b, s.channels, first, end);
        load_halo<halo - lag>(x + pair.a, s.channels, first, x_a);
        load_halo<halo - lag>(x + pair.b, s.channels, first, x_b);
      }
      upstream[0].begin(upstream_a.first + tile.first_token * upstream_a.stride,
                        upstream_a.stride,
                        tile.begin,
                        last);
      upstream[1].begin(upstream_b.first + tile.first_token * upstream_b.stride,
                        upstream_b.stride,
                        tile.begin,
                        last);
      docs.begin(s, tile, tile.begin);
      for (int t = tile.begin; t < tile.end + halo; t += ring) {
        Angles<width> angles[ring];
        if (rotary.angle >= 0) {
#pragma unroll
          for (int i = 0; i < ring; ++i)
            angles[i].load_from(in.heads, rotary.angle, min(t + i, last - 1));
        }
#pragma unroll
        for (int i = 0; i < ring; ++i) {
          float a[width], b[width];
          upstream[0].next(i, grad_a[i]);
          upstream[1].next(i, grad_b[i]);
          docs.load(s, tile, t + i, i);
          if constexpr (needs_x) {
            next_a.next(i, x_a[i]);
            next_b.next(i, x_b[i]);
          }
          if (rotary.angle >= 0) angles[i].rotate(in.heads.interleaved, -1, grad_a[i], grad_b[i]);
          if constexpr (norms) {
            convolve<taps>(x_a, docs, w.side[0], i, a);
            convolve<taps>(x_b, docs, w.side[1], i, b);
            norm.backward(a, b, grad_a[i], grad_b[i], t + i < tile.end, norm_sums);
          }
          const int token = t + i - halo;
          if (token < tile.begin || token >= tile.end) continue;
          if constexpr (taps > 0) {
            const int index = index_before<ring>(i, halo - lag);
            accumulate_taps<taps>(grad_a, docs, x_a[index], i, sums.side[0]);
            accumulate_taps<taps>(grad_b, docs, x_b[index], i, sums.side[1]);
          }
          convolve_transposed<taps>(grad_a, docs, w.side[0], i, a);
          convolve_transposed<taps>(grad_b, docs, w.side[1], i, b);
          store(out + token * s.channels + pair.a, a);
          store(out + token * s.channels + pair.b, b);
        }
      }
    });
  }
  write_tap_sums(sums, pair, s.channels, tap_partial);
  write_tap_sums(norm_sums, pair, s.channels, norm_partial);
}

/// As dispatch, with whether there are norms as a third constant.
template <class T, class Run>
void dispatch_with_norms(const CanonRope<T>& in, const Run& run) {
  dispatch(in.canon.taps, in.canon.sequences.doc_ids, [&](auto taps, auto documents) {
    in.norms.q ? run(taps, documents, std::true_type{}) : run(taps, documents, std::false_type{});
  });
}

}  // namespace

bool rope_is_supported(const HeadShape& heads) {
  constexpr int width = 4;  // of the widest vector
  return heads.head_dim % (2 * width) == 0 && heads.rope_dim % (2 * width) == 0 &&
         (heads.head_dim - heads.rope_dim) % (2 * width) == 0;
}

bool head_norm_is_supported(const HeadShape& heads) {
  constexpr int most_channels = 2 * backward_width<4> * warp_size;  // of a warp, at the least
  const bool power_of_two = (heads.head_dim & (heads.head_dim - 1)) == 0;
  return power_of_two && heads.head_dim <= most_channels;
}

template <class T>
void canon_rope_forward(const CanonRope<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.canon.sequences;
  if (s.batch * s.length == 0) return;
  dispatch_with_norms(in, [&](auto taps, auto documents, auto norms) {
    const auto kernel = forward_kernel<T, taps, documents, norms>;
    const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / forward_width);
    kernel<<<grid.blocks, pair_block, 0, stream>>>(in, grid.tiles, y);
    require_started();
  });
}

template <class T>
void canon_rope_backward(const CanonRope<T>& in,
                         const HeadGradientArgs<T>& grad_y,
                         T* grad_x,
                         const AllocateRows& tap_sums,
                         const AllocateRows& norm_sums,
                         cudaStream_t stream) {
  const Sequences& s = in.canon.sequences;
  dispatch_with_norms(in, [&](auto taps, auto documents, auto norms) {
    const auto kernel = backward_kernel<T, taps, documents, norms>;
    const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / backward_width<taps>);
    float* tap_partial = taps > 0 ? tap_sums(grid.blocks.y) : nullptr;
    float* norm_partial = norms ? norm_sums(grid.blocks.y) : nullptr;
    if (s.batch * s.length == 0) return;
    kernel<<<grid.blocks, pair_block, 0, stream>>>(
        in, grid.tiles, grad_y, grad_x, tap_partial, norm_partial);
    require_started();
  });
}

template void canon_rope_forward(const CanonRope<float>&, float*, cudaStream_t);
template void canon_rope_forward(const CanonRope<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_rope_backward(const CanonRope<float>&,
                                  const HeadGradientArgs<float>&,
                                  float*,
                                  const AllocateRows&,
                                  const AllocateRows&,
                                  cudaStream_t);
template void canon_rope_backward(const CanonRope<bfloat16>&,
                                  const HeadGradientArgs<bfloat16>&,
                                  bfloat16*,
                                  const AllocateRows&,
                                  const AllocateRows&,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
