#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/march.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int forward_width = 4;
constexpr int backward_width = 2;  // it keeps four windows of registers

/// Gate and up of one channel of the output.
template <int width>
__device__ __forceinline__ Unit unit_of(int64_t channels) {
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  if (first >= channels / 2) return {-1, -1};
  return {first, channels / 2 + first};
}

template <class T, int taps, bool documents>
__global__ void forward_kernel(CanonSwiGlu<T> in, T* y, int tokens) {
  constexpr int width = forward_width;
  const Sequences& s = in.sequences;
  const Unit unit = unit_of<width>(s.channels);
  Stretch stretch;
  if (unit.a < 0 || !stretch_of(s, tokens, stretch)) return;
  Taps<taps, width> w;
  w.load(in.weights, in.residual, unit);
  const int64_t first = stretch.row * s.length;
  T* out = y + first * (s.channels / 2) + unit.a;
  march<T, taps, width, documents>(in.gate_up + first * s.channels,
                                   s.channels,
                                   documents ? s.doc_ids + first : nullptr,
                                   unit,
                                   stretch,
                                   w,
                                   [&](int t, const float(&gate)[width], const float(&up)[width]) {
                                     float value[width];
#pragma unroll
                                     for (int j = 0; j < width; ++j)
                                       value[j] = gate[j] / (1 + __expf(-gate[j])) * up[j];
                                     store(out + t * (s.channels / 2), value);
                                   });
}

template <class T, int taps, bool documents>
__global__ void backward_kernel(
    CanonSwiGlu<T> in, const T* grad_y, T* y, T* grad_gate_up, float* partial, int tokens) {
  constexpr int width = backward_width;
  const Sequences& s = in.sequences;
  const Unit unit = unit_of<width>(s.channels);
  Stretch stretch;
  const bool active = stretch_of(s, tokens, stretch) && unit.a >= 0;
  Taps<taps, width> grad_taps;
  if (active) {
    Taps<taps, width> w;
    w.load(in.weights, in.residual, unit);
    if constexpr (taps > 0) {
#pragma unroll
      for (int tap = 0; tap < taps; ++tap) {
        fill(grad_taps.of[0][tap], 0);
        fill(grad_taps.of[1][tap], 0);
      }
    }
    const int64_t first = stretch.row * s.length, half = s.channels / 2;
    const T* upstream = grad_y + first * half + unit.a;
    T* out = y + first * half + unit.a;
    march_back<T, taps, width, documents, /*needs_outputs=*/true>(
        in.gate_up + first * s.channels,
        grad_gate_up + first * s.channels,
        s.channels,
        documents ? s.doc_ids + first : nullptr,
        unit,
        stretch,
        w,
        grad_taps,
        [&](int t, bool own, float(&gate)[width], float(&up)[width]) {
          float grad[width], value[width];
          load(upstream + t * half, grad);
#pragma unroll
          for (int j = 0; j < width; ++j) {
            const float sigmoid = 1 / (1 + __expf(-gate[j]));
            const float silu = gate[j] * sigmoid;
            value[j] = silu * up[j];
            gate[j] = grad[j] * up[j] * sigmoid * (1 + gate[j] - silu);
            up[j] = grad[j] * silu;
          }
          if (own) store(out + t * half, value);
        });
  }
  write_tap_sums(grad_taps, active, unit, s.channels, partial);
}

}  // namespace

template <class T>
void canon_swiglu_forward(const CanonSwiGlu<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  const MarchShape shape = march_shape(s, s.channels / 2 / forward_width);
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    forward_kernel<T, decltype(taps)::value, decltype(documents)::value>
        <<<shape.grid, shape.block, 0, stream>>>(in, y, shape.tokens);
  });
}

int64_t canon_swiglu_partial_rows(const Sequences& s) {
  return march_shape(s, s.channels / 2 / backward_width).block_rows();
}

template <class T>
void canon_swiglu_backward(const CanonSwiGlu<T>& in,
                           const T* grad_y,
                           T* y,
                           T* grad_gate_up,
                           float* partial,
                           cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  const MarchShape shape = march_shape(s, s.channels / 2 / backward_width);
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    backward_kernel<T, decltype(taps)::value, decltype(documents)::value>
        <<<shape.grid, shape.block, 0, stream>>>(
            in, grad_y, y, grad_gate_up, partial, shape.tokens);
  });
}

template void canon_swiglu_forward(const CanonSwiGlu<float>&, float*, cudaStream_t);
template void canon_swiglu_forward(const CanonSwiGlu<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<float>&, const float*, float*, float*, float*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<bfloat16>&, const bfloat16*, bfloat16*, bfloat16*, float*, cudaStream_t);

}  // namespace forge::ops::cuda
