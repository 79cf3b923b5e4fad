#include "backends/libtorch/ops/self_attention/cuda.h"

#include "backends/libtorch/ops/canon_conv/units.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of a pack. With a convolution the way back keeps more for each.
constexpr int forward_width = 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 4 : 2;
// Blocks that a multiprocessor shall have registers for.
template <int taps>
constexpr int backward_blocks = taps == 0 ? 1 : 4;

/// A thread's two packs, and where the angles of their pairs lie; -1 where they do not turn.
struct Pair {
  Unit unit;
  int angle;
};

/// Packs that turn against each other belong to one thread: the two halves of a head's turning
/// channels, or, with interleaved pairs, any two packs. The rest of a head, and heads that do not
/// turn, are halved as well.
/// With norms both packs belong to one head.
template <int width, bool norms>
__device__ __forceinline__ Pair pair_of(int lane, const Heads& heads, int64_t channels) {
  const int64_t index = int64_t{blockIdx.x} * unit_lanes + lane;
  if (index >= channels / 2 / width) return {{-1, -1}, -1};
  if (!norms && heads.rope_dim == 0) return {{index * width, channels / 2 + index * width}, -1};
  const int per_head = heads.head_dim / 2 / width;
  const int head = static_cast<int>(index) / per_head;
  const int64_t base = int64_t{head} * heads.head_dim;
  const int within = static_cast<int>(index) % per_head * width;
  const int half = heads.rope_dim / 2;
  if (head >= heads.turning) return {{base + within, base + heads.head_dim / 2 + within}, -1};
  if (within < half) return {{base + within, base + half + within}, within};
  const int rest = within - half, half_rest = (heads.head_dim - heads.rope_dim) / 2;
  return {{base + heads.rope_dim + rest, base + heads.rope_dim + half_rest + rest}, -1};
}

/// The angles of a thread's pair at one position: of the pairs that its two packs make or, where
/// neighbours are pairs, of those in its first pack, then in its second.
template <int width>
struct Angles {
  float cos[width], sin[width];

  __device__ __forceinline__ void load_from(const Heads& heads, int angle, int position) {
    const int half = heads.rope_dim / 2;
    const float* cos_row = heads.cos + int64_t{position} * half;
    const float* sin_row = heads.sin + int64_t{position} * half;
    if (!heads.interleaved) {
      load_input(cos_row + angle, cos);
      load_input(sin_row + angle, sin);
      return;
    }
    // Packs a and b begin at channels `angle` and half + angle.
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const bool second = j >= width / 2;
      const int pair = (angle + (second ? half : 0)) / 2 + j - (second ? width / 2 : 0);
      cos[j] = __ldg(cos_row + pair);
      sin[j] = __ldg(sin_row + pair);
    }
  }

  /// Turns a pair of packs by the angles (sign +1) or back (-1).
  __device__ __forceinline__ void turn(bool interleaved,
                                       float sign,
                                       float (&a)[width],
                                       float (&b)[width]) const {
    if (!interleaved) {
#pragma unroll
      for (int j = 0; j < width; ++j) turn(j, sign, a[j], b[j]);
      return;
    }
#pragma unroll
    for (int j = 0; j < width / 2; ++j) {
      turn(j, sign, a[2 * j], a[2 * j + 1]);
      turn(width / 2 + j, sign, b[2 * j], b[2 * j + 1]);
    }
  }

 private:
  __device__ __forceinline__ void turn(int j, float sign, float& first, float& second) const {
    const float x = first, y = second, s = sign * sin[j];
    first = x * cos[j] - y * s;
    second = x * s + y * cos[j];
  }
};

/// The norm of a thread's head, as far as its two packs go: a head's packs lie in neighbouring
/// lanes.
template <class T, int width, bool enabled>
struct NormOfHead {
  float weights[2][width];
  int lanes = 0;  // that share the head; 0: it is not normalised
  float share = 0, eps = 0;
  bool round_first = false;

  __device__ __forceinline__ void begin(const HeadNorms& norms,
                                        const Heads& heads,
                                        const Unit& unit) {
    if constexpr (enabled) {
      const int head = static_cast<int>(unit.a / heads.head_dim);
      if (head >= heads.turning) return;
      const float* from = head < norms.query_heads ? norms.q : norms.k;
      load(from + unit.a % heads.head_dim, weights[0]);
      load(from + unit.b % heads.head_dim, weights[1]);
      lanes = heads.head_dim / 2 / width;
      share = 1 / static_cast<float>(heads.head_dim);
      eps = norms.eps;
      round_first = norms.round_first;
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
    normalise<T>(a, scale, round_first);
    normalise<T>(b, scale, round_first);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      a[j] *= weights[0][j];
      b[j] *= weights[1][j];
    }
  }

  /// Turns the gradient grad_a, grad_b of the norm's outputs into that of its inputs a, b. Adds the
  /// weights' to sums, where they count.
  __device__ __forceinline__ void go_back(const float (&a)[width],
                                          const float (&b)[width],
                                          float (&grad_a)[width],
                                          float (&grad_b)[width],
                                          bool counts,
                                          Taps<enabled ? 1 : 0, width>& sums) const {
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
    normalise<T>(normal_a, scale, round_first);
    normalise<T>(normal_b, scale, round_first);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (counts) {
        sums.of[0][0][j] += grad_a[j] * normal_a[j];
        sums.of[1][0][j] += grad_b[j] * normal_b[j];
      }
      grad_a[j] = scale * weights[0][j] * grad_a[j] - factor * a[j];
      grad_b[j] = scale * weights[1][j] * grad_b[j] - factor * b[j];
    }
  }
};

template <class T, int taps, bool documents, bool norms>
__global__ void __launch_bounds__(unit_threads)
    forward_kernel(PrepareHeads<T> in, Stretches stretches, T* y) {
  constexpr int width = forward_width, reach = taps > 0 ? taps - 1 : 0, round = slots<taps>;
  const Sequences& s = in.sequences;
  const Pair pair = pair_of<width, norms>(threadIdx.x, in.heads, s.channels);
  const Unit unit = pair.unit;
  if (unit.a < 0) return;
  Taps<taps, width> w;
  w.load(in.weights, in.residual, unit);
  NormOfHead<T, width, norms> norm;
  norm.begin(in.norms, in.heads, unit);
  for_each_stretch(s, stretches, [&](const Stretch& stretch) {
    const T* x = in.x + stretch.first_token * s.channels;
    T* out = y + stretch.first_token * s.channels;
    Incoming<T, round, width> next_a, next_b;
    float of_a[round][width], of_b[round][width];
    DocumentRing<round, documents> docs;
    next_a.begin(x + unit.a, s.channels, stretch.begin, stretch.end);
    next_b.begin(x + unit.b, s.channels, stretch.begin, stretch.end);
    fill_before<reach>(x + unit.a, s.channels, stretch.begin, of_a);
    fill_before<reach>(x + unit.b, s.channels, stretch.begin, of_b);
    docs.begin(s, stretch, stretch.begin);
    for (int t = stretch.begin; t < stretch.end; t += round) {
      Angles<width> angles[round];
      if (pair.angle >= 0) {
#pragma unroll
        for (int i = 0; i < round; ++i)
          angles[i].load_from(in.heads, pair.angle, min(t + i, stretch.end - 1));
      }
#pragma unroll
      for (int i = 0; i < round; ++i) {
        float a[width], b[width];
        next_a.take(i, of_a[i]);
        next_b.take(i, of_b[i]);
        docs.take(s, stretch, t + i, i);
        convolve<taps>(of_a, docs, w.of[0], i, a);
        convolve<taps>(of_b, docs, w.of[1], i, b);
        norm.apply(a, b);
        if (pair.angle >= 0) angles[i].turn(in.heads.interleaved, 1, a, b);
        if (t + i >= stretch.end) continue;
        store(out + (t + i) * s.channels + unit.a, a);
        store(out + (t + i) * s.channels + unit.b, b);
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
__device__ __forceinline__ ChannelGradient<T> gradient_of(const HeadGradientsOf<T>& grad,
                                                          int64_t channel) {
  if (channel < grad.q_channels) return {grad.q + channel, grad.q_channels};
  channel -= grad.q_channels;
  if (channel < grad.kv_channels) return {grad.k + channel, grad.kv_channels};
  return {grad.v + channel - grad.kv_channels, grad.kv_channels};
}

template <class T, int taps, bool documents, bool norms>
__global__ void __launch_bounds__(unit_threads, backward_blocks<taps>)
    backward_kernel(PrepareHeads<T> in,
                    Stretches stretches,
                    HeadGradientsOf<T> grad_y,
                    T* grad_x,
                    float* tap_partial,
                    float* norm_partial) {
  constexpr int width = backward_width<taps>, reach = taps > 0 ? taps - 1 : 0, round = slots<taps>;
  // The taps' gradients need the tokens of the stretch alone, the norms' what they read.
  constexpr bool needs_x = taps > 0 || norms;
  constexpr int behind = norms ? 0 : reach;
  const Sequences& s = in.sequences;
  const Pair pair = pair_of<width, norms>(threadIdx.x, in.heads, s.channels);
  const Unit unit = pair.unit;
  Taps<taps, width> w, sums;
  Taps<norms ? 1 : 0, width> norm_sums;  // added up as taps are
  sums.clear();
  norm_sums.clear();
  if (unit.a >= 0) {
    w.load(in.weights, in.residual, unit);
    NormOfHead<T, width, norms> norm;
    norm.begin(in.norms, in.heads, unit);
    const ChannelGradient<T> upstream_a = gradient_of(grad_y, unit.a);
    const ChannelGradient<T> upstream_b = gradient_of(grad_y, unit.b);
    for_each_stretch(s, stretches, [&](const Stretch& stretch) {
      const T* x = in.x + stretch.first_token * s.channels;
      T* out = grad_x + stretch.first_token * s.channels;
      Incoming<T, round, width> next_a, next_b, upstream[2];
      // Inputs, of which slot i is token t + i - behind, and gradients.
      float of_a[round][width], of_b[round][width], grad_a[round][width], grad_b[round][width];
      DocumentRing<round, documents> docs;
      const int last = min(stretch.end + reach, stretch.length);
      if constexpr (needs_x) {
        const int first = stretch.begin - behind, end = norms ? last : stretch.end;
        next_a.begin(x + unit.a, s.channels, first, end);
        next_b.begin(x + unit.b, s.channels, first, end);
        fill_before<reach - behind>(x + unit.a, s.channels, first, of_a);
        fill_before<reach - behind>(x + unit.b, s.channels, first, of_b);
      }
      upstream[0].begin(upstream_a.first + stretch.first_token * upstream_a.stride,
                        upstream_a.stride,
                        stretch.begin,
                        last);
      upstream[1].begin(upstream_b.first + stretch.first_token * upstream_b.stride,
                        upstream_b.stride,
                        stretch.begin,
                        last);
      docs.begin(s, stretch, stretch.begin);
      for (int t = stretch.begin; t < stretch.end + reach; t += round) {
        Angles<width> angles[round];
        if (pair.angle >= 0) {
#pragma unroll
          for (int i = 0; i < round; ++i)
            angles[i].load_from(in.heads, pair.angle, min(t + i, last - 1));
        }
#pragma unroll
        for (int i = 0; i < round; ++i) {
          float a[width], b[width];
          upstream[0].take(i, grad_a[i]);
          upstream[1].take(i, grad_b[i]);
          docs.take(s, stretch, t + i, i);
          if constexpr (needs_x) {
            next_a.take(i, of_a[i]);
            next_b.take(i, of_b[i]);
          }
          if (pair.angle >= 0) angles[i].turn(in.heads.interleaved, -1, grad_a[i], grad_b[i]);
          if constexpr (norms) {
            convolve<taps>(of_a, docs, w.of[0], i, a);
            convolve<taps>(of_b, docs, w.of[1], i, b);
            norm.go_back(a, b, grad_a[i], grad_b[i], t + i < stretch.end, norm_sums);
          }
          const int token = t + i - reach;
          if (token < stretch.begin || token >= stretch.end) continue;
          if constexpr (taps > 0) {
            const int own = slot_before<round>(i, reach - behind);
            add_tap_products<taps>(grad_a, docs, of_a[own], i, sums.of[0]);
            add_tap_products<taps>(grad_b, docs, of_b[own], i, sums.of[1]);
          }
          gather<taps>(grad_a, docs, w.of[0], i, a);
          gather<taps>(grad_b, docs, w.of[1], i, b);
          store(out + token * s.channels + unit.a, a);
          store(out + token * s.channels + unit.b, b);
        }
      }
    });
  }
  write_tap_sums(sums, unit, s.channels, tap_partial);
  write_tap_sums(norm_sums, unit, s.channels, norm_partial);
}

/// As with_taps, and with a constant for the norms.
template <class T, class Run>
void with_constants(const PrepareHeads<T>& in, const Run& run) {
  with_taps(in.taps, in.sequences.doc_ids, [&](auto taps, auto documents) {
    in.norms.q ? run(taps, documents, std::true_type{}) : run(taps, documents, std::false_type{});
  });
}

template <class T, int taps, bool documents, bool norms>
UnitGrid backward_grid(const Sequences& s) {
  return unit_grid<taps>(
      backward_kernel<T, taps, documents, norms>, s, s.channels / 2 / backward_width<taps>);
}

}  // namespace

bool heads_fit(const Heads& heads) {
  constexpr int width = 4;  // the widest pack
  return heads.head_dim % (2 * width) == 0 && heads.rope_dim % (2 * width) == 0 &&
         (heads.head_dim - heads.rope_dim) % (2 * width) == 0;
}

bool heads_can_be_normalised(const Heads& heads) {
  constexpr int most_channels = 2 * backward_width<4> * warp_size;  // of a warp, at the least
  const bool power_of_two = (heads.head_dim & (heads.head_dim - 1)) == 0;
  return power_of_two && heads.head_dim <= most_channels;
}

template <class T>
void prepare_heads(const PrepareHeads<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_constants(in, [&](auto taps, auto documents, auto norms) {
    constexpr int count = decltype(taps)::value;
    const auto kernel =
        forward_kernel<T, count, decltype(documents)::value, decltype(norms)::value>;
    const UnitGrid grid = unit_grid<count>(kernel, s, s.channels / 2 / forward_width);
    kernel<<<grid.blocks, unit_block, 0, stream>>>(in, grid.stretches, y);
  });
}

template <class T>
int64_t prepare_heads_partial_rows(const PrepareHeads<T>& in) {
  int64_t rows = 0;
  with_constants(in, [&](auto taps, auto documents, auto norms) {
    rows =
        backward_grid<T, decltype(taps)::value, decltype(documents)::value, decltype(norms)::value>(
            in.sequences)
            .blocks.y;
  });
  return rows;
}

template <class T>
void prepare_heads_backward(const PrepareHeads<T>& in,
                            const HeadGradientsOf<T>& grad_y,
                            T* grad_x,
                            float* tap_partial,
                            float* norm_partial,
                            cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_constants(in, [&](auto taps, auto documents, auto norms) {
    constexpr int count = decltype(taps)::value;
    constexpr bool several = decltype(documents)::value, normal = decltype(norms)::value;
    const UnitGrid grid = backward_grid<T, count, several, normal>(s);
    backward_kernel<T, count, several, normal><<<grid.blocks, unit_block, 0, stream>>>(
        in, grid.stretches, grad_y, grad_x, tap_partial, norm_partial);
  });
}

template void prepare_heads(const PrepareHeads<float>&, float*, cudaStream_t);
template void prepare_heads(const PrepareHeads<bfloat16>&, bfloat16*, cudaStream_t);
template int64_t prepare_heads_partial_rows(const PrepareHeads<float>&);
template int64_t prepare_heads_partial_rows(const PrepareHeads<bfloat16>&);
template void prepare_heads_backward(const PrepareHeads<float>&,
                                     const HeadGradientsOf<float>&,
                                     float*,
                                     float*,
                                     float*,
                                     cudaStream_t);
template void prepare_heads_backward(const PrepareHeads<bfloat16>&,
                                     const HeadGradientsOf<bfloat16>&,
                                     bfloat16*,
                                     float*,
                                     float*,
                                     cudaStream_t);

}  // namespace forge::ops::cuda
