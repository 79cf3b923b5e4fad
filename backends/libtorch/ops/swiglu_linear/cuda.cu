#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/march.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of gate, and as many of up, that a thread takes at a time where their number allows it.
// With a convolution the way back keeps four windows of registers for each.
template <int taps>
constexpr int forward_width = taps == 0 ? 8 : 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 8 : 2;

/// Calls run(width, a constant) with the widest of `best`, 2 and 1 that divides the channels.
template <int best, class Run>
void with_width(int64_t channels, const Run& run) {
  if (channels % 8 == 0) return run(std::integral_constant<int, best>{});
  if (channels % 2 == 0) return run(std::integral_constant<int, 2>{});
  run(std::integral_constant<int, 1>{});
}

/// Gate and up of some channels of the output.
template <int width>
__device__ __forceinline__ Unit unit_of(int lane, int64_t channels) {
  const int64_t first = (int64_t{blockIdx.x} * unit_lanes + lane) * width;
  if (first >= channels / 2) return {-1, -1};
  return {first, channels / 2 + first};
}

template <class T, int taps, bool documents, int width>
__global__ void forward_kernel(CanonSwiGlu<T> in, T* y) {
  const Sequences& s = in.sequences;
  const Stretch stretch = stretch_of<taps>(s);
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  const T* x = in.gate_up + stretch.first_token * s.channels;
  const Values<T> gates{x + unit.a, s.channels}, ups{x + unit.b, s.channels};
  if (unit.a < 0 || stretch.begin >= stretch.end) return;
  Taps<taps, width> w;
  w.load(in.weights, in.residual, unit);
  T* out = y + stretch.first_token * (s.channels / 2) + unit.a;
  march<T, taps, width, documents>(gates,
                                   ups,
                                   documents ? s.doc_ids + stretch.first_token : nullptr,
                                   stretch,
                                   w,
                                   [&](int t, const float(&gate)[width], const float(&up)[width]) {
                                     float value[width];
#pragma unroll
                                     for (int j = 0; j < width; ++j)
                                       value[j] = __fdividef(gate[j], 1 + __expf(-gate[j])) * up[j];
                                     store(out + t * (s.channels / 2), value);
                                   });
}

template <class T, int taps, bool documents, int width>
__global__ void backward_kernel(
    CanonSwiGlu<T> in, const T* grad_y, T* y, T* grad_gate_up, float* partial) {
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const Stretch stretch = stretch_of<taps>(s);
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  const T* x = in.gate_up + stretch.first_token * s.channels;
  const T* upstream = grad_y + stretch.first_token * half;
  const Values<T> gates{x + unit.a, s.channels}, ups{x + unit.b, s.channels};
  const Values<T> grads{upstream + unit.a, half};
  const bool active = unit.a >= 0 && stretch.begin < stretch.end;
  Taps<taps, width> grad_taps;
  if (active) {
    Taps<taps, width> w;
    w.load(in.weights, in.residual, unit);
    grad_taps.clear();
    T* out = y + stretch.first_token * half + unit.a;
    T* grad_x = grad_gate_up + stretch.first_token * s.channels;
    march_back<T, taps, width, documents, /*needs_outputs=*/true>(
        gates,
        ups,
        documents ? s.doc_ids + stretch.first_token : nullptr,
        stretch,
        w,
        grad_taps,
        [&](int t, bool own, float(&gate)[width], float(&up)[width]) {
          float grad[width], value[width];
          grads.at(t, stretch, grad);
#pragma unroll
          for (int j = 0; j < width; ++j) {
            const float sigmoid = __fdividef(1.0f, 1 + __expf(-gate[j]));
            const float silu = gate[j] * sigmoid;
            value[j] = silu * up[j];
            gate[j] = grad[j] * up[j] * sigmoid * (1 + gate[j] - silu);
            up[j] = grad[j] * silu;
          }
          if (own) store(out + t * half, value);
        },
        [&](int t, const float(&gate)[width], const float(&up)[width]) {
          store(grad_x + t * s.channels + unit.a, gate);
          store(grad_x + t * s.channels + unit.b, up);
        });
  }
  write_tap_sums(grad_taps, active, unit, s.channels, partial);
}

}  // namespace

template <class T>
void canon_swiglu_forward(const CanonSwiGlu<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    constexpr int count = decltype(taps)::value;
    with_width<forward_width<count>>(s.channels / 2, [&](auto width) {
      const MarchShape shape = march_shape<count>(s, s.channels / 2 / decltype(width)::value);
      forward_kernel<T, count, decltype(documents)::value, decltype(width)::value>
          <<<shape.grid, shape.block, 0, stream>>>(in, y);
    });
  });
}

int64_t canon_swiglu_partial_rows(const Sequences& s) { return march_shape<4>(s, 1).block_rows(); }

template <class T>
void canon_swiglu_backward(const CanonSwiGlu<T>& in,
                           const T* grad_y,
                           T* y,
                           T* grad_gate_up,
                           float* partial,
                           cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    constexpr int count = decltype(taps)::value;
    with_width<backward_width<count>>(s.channels / 2, [&](auto width) {
      const MarchShape shape = march_shape<count>(s, s.channels / 2 / decltype(width)::value);
      backward_kernel<T, count, decltype(documents)::value, decltype(width)::value>
          <<<shape.grid, shape.block, 0, stream>>>(in, grad_y, y, grad_gate_up, partial);
    });
  });
}

template void canon_swiglu_forward(const CanonSwiGlu<float>&, float*, cudaStream_t);
template void canon_swiglu_forward(const CanonSwiGlu<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<float>&, const float*, float*, float*, float*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<bfloat16>&, const bfloat16*, bfloat16*, bfloat16*, float*, cudaStream_t);

}  // namespace forge::ops::cuda
