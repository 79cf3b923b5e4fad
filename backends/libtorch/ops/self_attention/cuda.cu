#include "backends/libtorch/ops/self_attention/cuda.h"

#include "backends/libtorch/ops/canon_conv/march.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of a pack. With a convolution the way back keeps three windows of registers for each.
constexpr int forward_width = 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 4 : 2;

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

/// Turns a pair of packs by the angles of position t (sign +1) or back (-1).
template <int width>
__device__ __forceinline__ void turn(
    const Heads& heads, int angle, int t, float sign, float (&a)[width], float (&b)[width]) {
  const int half = heads.rope_dim / 2;
  const float* cos_row = heads.cos + int64_t{t} * half;
  const float* sin_row = heads.sin + int64_t{t} * half;
  if (!heads.interleaved) {
    float c[width], s[width];
    load_input(cos_row + angle, c);
    load_input(sin_row + angle, s);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float first = a[j], second = b[j];
      a[j] = first * c[j] - sign * second * s[j];
      b[j] = sign * first * s[j] + second * c[j];
    }
    return;
  }
  // Neighbours are a pair: packs a and b begin at channels `angle` and half + angle.
#pragma unroll
  for (int j = 0; j < width; j += 2) {
    const int of_a = (angle + j) / 2, of_b = (half + angle + j) / 2;
    const float ca = cos_row[of_a], sa = sign * sin_row[of_a];
    const float cb = cos_row[of_b], sb = sign * sin_row[of_b];
    const float a0 = a[j], a1 = a[j + 1], b0 = b[j], b1 = b[j + 1];
    a[j] = a0 * ca - a1 * sa;
    a[j + 1] = a0 * sa + a1 * ca;
    b[j] = b0 * cb - b1 * sb;
    b[j + 1] = b0 * sb + b1 * cb;
  }
}

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
#pragma unroll
    for (int j = 0; j < width; ++j) {
      a[j] = normalised<T>(a[j], scale, round_first) * weights[0][j];
      b[j] = normalised<T>(b[j], scale, round_first) * weights[1][j];
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
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (counts) {
        sums.of[0][0][j] += grad_a[j] * normalised<T>(a[j], scale, round_first);
        sums.of[1][0][j] += grad_b[j] * normalised<T>(b[j], scale, round_first);
      }
      grad_a[j] = scale * weights[0][j] * grad_a[j] - factor * a[j];
      grad_b[j] = scale * weights[1][j] * grad_b[j] - factor * b[j];
    }
  }
};

template <class T, int taps, bool documents, bool norms>
__global__ void forward_kernel(PrepareHeads<T> in, T* y) {
  constexpr int width = forward_width;
  const Sequences& s = in.sequences;
  const Stretch stretch = stretch_of<taps>(s);
  const Pair pair = pair_of<width, norms>(threadIdx.x, in.heads, s.channels);
  const T* x = in.x + stretch.first_token * s.channels;
  const Values<T> of_a{x + pair.unit.a, s.channels}, of_b{x + pair.unit.b, s.channels};
  if (pair.unit.a < 0 || stretch.begin >= stretch.end) return;
  Taps<taps, width> w;
  w.load(in.weights, in.residual, pair.unit);
  NormOfHead<T, width, norms> norm;
  norm.begin(in.norms, in.heads, pair.unit);
  T* out = y + stretch.first_token * s.channels;
  march<T, taps, width, documents>(of_a,
                                   of_b,
                                   documents ? s.doc_ids + stretch.first_token : nullptr,
                                   stretch,
                                   w,
                                   [&](int t, float(&a)[width], float(&b)[width]) {
                                     norm.apply(a, b);
                                     if (pair.angle >= 0) turn(in.heads, pair.angle, t, 1, a, b);
                                     store(out + t * s.channels + pair.unit.a, a);
                                     store(out + t * s.channels + pair.unit.b, b);
                                   });
}

/// Where the gradient of a channel lies, from the row's first token on.
template <class T>
__device__ __forceinline__ Values<T> gradient_of(const HeadGradientsOf<T>& grad,
                                                 int64_t first_token,
                                                 int64_t channel) {
  if (channel < grad.q_channels) {
    return {grad.q + first_token * grad.q_channels + channel, grad.q_channels};
  }
  channel -= grad.q_channels;
  const bool key = channel < grad.kv_channels;
  if (!key) channel -= grad.kv_channels;
  return {(key ? grad.k : grad.v) + first_token * grad.kv_channels + channel, grad.kv_channels};
}

template <class T, int taps, bool documents, bool norms>
__global__ void backward_kernel(PrepareHeads<T> in,
                                HeadGradientsOf<T> grad_y,
                                T* grad_x,
                                float* tap_partial,
                                float* norm_partial) {
  constexpr int width = backward_width<taps>;
  const Sequences& s = in.sequences;
  const Stretch stretch = stretch_of<taps>(s);
  const Pair pair = pair_of<width, norms>(threadIdx.x, in.heads, s.channels);
  const T* x = in.x + stretch.first_token * s.channels;
  const Values<T> of_a{x + pair.unit.a, s.channels}, of_b{x + pair.unit.b, s.channels};
  const bool active = pair.unit.a >= 0 && stretch.begin < stretch.end;
  Taps<taps, width> grad_taps;
  Taps<norms ? 1 : 0, width> grad_norms;  // summed up as taps are
  if (active) {
    Taps<taps, width> w;
    w.load(in.weights, in.residual, pair.unit);
    NormOfHead<T, width, norms> norm;
    norm.begin(in.norms, in.heads, pair.unit);
    grad_norms.clear();
    grad_taps.clear();
    const Values<T> grad_a = gradient_of(grad_y, stretch.first_token, pair.unit.a);
    const Values<T> grad_b = gradient_of(grad_y, stretch.first_token, pair.unit.b);
    T* out = grad_x + stretch.first_token * s.channels;
    march_back<T, taps, width, documents, /*needs_outputs=*/norms>(
        of_a,
        of_b,
        documents ? s.doc_ids + stretch.first_token : nullptr,
        stretch,
        w,
        grad_taps,
        [&](int t, bool own, float(&a)[width], float(&b)[width]) {
          if (t >= stretch.length) {
            fill(a, 0);
            fill(b, 0);
            return;
          }
          float grad_of_a[width], grad_of_b[width];
          grad_a.at(t, grad_of_a);
          grad_b.at(t, grad_of_b);
          if (pair.angle >= 0) turn(in.heads, pair.angle, t, -1, grad_of_a, grad_of_b);
          norm.go_back(a, b, grad_of_a, grad_of_b, own, grad_norms);
#pragma unroll
          for (int j = 0; j < width; ++j) {
            a[j] = grad_of_a[j];
            b[j] = grad_of_b[j];
          }
        },
        [&](int t, const float(&a)[width], const float(&b)[width]) {
          store(out + t * s.channels + pair.unit.a, a);
          store(out + t * s.channels + pair.unit.b, b);
        });
  }
  write_tap_sums(grad_taps, active, pair.unit, s.channels, tap_partial);
  write_tap_sums(grad_norms, active, pair.unit, s.channels, norm_partial);
}

/// As with_taps, and with a constant for the norms.
template <class T, class Run>
void with_constants(const PrepareHeads<T>& in, const Run& run) {
  with_taps(in.taps, in.sequences.doc_ids, [&](auto taps, auto documents) {
    in.norms.q ? run(taps, documents, std::true_type{}) : run(taps, documents, std::false_type{});
  });
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
    const MarchShape shape = march_shape<count>(s, s.channels / 2 / forward_width);
    forward_kernel<T, count, decltype(documents)::value, decltype(norms)::value>
        <<<shape.grid, shape.block, 0, stream>>>(in, y);
  });
}

int64_t prepare_heads_partial_rows(const Sequences& s) { return march_shape<4>(s, 1).block_rows(); }

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
    const MarchShape shape = march_shape<count>(s, s.channels / 2 / backward_width<count>);
    backward_kernel<T, count, decltype(documents)::value, decltype(norms)::value>
        <<<shape.grid, shape.block, 0, stream>>>(in, grad_y, grad_x, tap_partial, norm_partial);
  });
}

template void prepare_heads(const PrepareHeads<float>&, float*, cudaStream_t);
template void prepare_heads(const PrepareHeads<bfloat16>&, bfloat16*, cudaStream_t);
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
