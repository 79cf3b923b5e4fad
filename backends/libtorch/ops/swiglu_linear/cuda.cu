#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/march.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of gate, and as many of up, that a thread takes at a time. With a convolution the way
// back keeps four windows of registers for each.
template <class T, int taps>
constexpr int forward_width = taps == 0 ? 8 : 8 / sizeof(T);
template <class T, int taps>
constexpr int backward_width = taps == 0 ? 8 : 4 / sizeof(T);

/// Gate and up of some channels of the output.
template <int width>
__device__ __forceinline__ Unit unit_of(int lane, int64_t channels) {
  const int64_t first = (int64_t{blockIdx.x} * unit_lanes + lane) * width;
  if (first >= channels / 2) return {-1, -1};
  return {first, channels / 2 + first};
}

template <class T, int taps, bool documents>
__global__ void forward_kernel(CanonSwiGlu<T> in, T* y) {
  constexpr int width = forward_width<T, taps>, reach = taps > 0 ? taps - 1 : 0;
  const Sequences& s = in.sequences;
  const Stretch stretch = stretch_of(s);
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  const T* x = in.gate_up + stretch.first_token * s.channels;
  Values<T> gates{x + unit.a, s.channels}, ups{x + unit.b, s.channels};
  if constexpr (taps > 0) {
    __shared__ Staged<T, width, reach, 0> staged[2];
    const auto side = [&](int which) {
      staged[which].begin(x, s.channels, stretch, [&](int lane) {
        const Unit of_lane = unit_of<width>(lane, s.channels);
        return which == 0 ? of_lane.a : of_lane.b;
      });
    };
    side(0);
    side(1);
    wait_for_staged();
    gates = staged[0].of_lane(stretch);
    ups = staged[1].of_lane(stretch);
  }
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

template <class T, int taps, bool documents>
__global__ void backward_kernel(
    CanonSwiGlu<T> in, const T* grad_y, T* y, T* grad_gate_up, float* partial) {
  constexpr int width = backward_width<T, taps>, reach = taps > 0 ? taps - 1 : 0;
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const Stretch stretch = stretch_of(s);
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  const T* x = in.gate_up + stretch.first_token * s.channels;
  const T* upstream = grad_y + stretch.first_token * half;
  Values<T> gates{x + unit.a, s.channels}, ups{x + unit.b, s.channels},
      grads{upstream + unit.a, half};
  if constexpr (taps > 0) {
    __shared__ Staged<T, width, reach, reach> staged[2];
    __shared__ Staged<T, width, 0, reach> staged_grads;
    const auto side = [&](int which) {
      return [&, which](int lane) {
        const Unit of_lane = unit_of<width>(lane, s.channels);
        return which == 0 ? of_lane.a : of_lane.b;
      };
    };
    staged[0].begin(x, s.channels, stretch, side(0));
    staged[1].begin(x, s.channels, stretch, side(1));
    staged_grads.begin(upstream, half, stretch, side(0));
    wait_for_staged();
    gates = staged[0].of_lane(stretch);
    ups = staged[1].of_lane(stretch);
    grads = staged_grads.of_lane(stretch);
  }
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
          if constexpr (taps == 0) {
            load_input(grads.first + t * grads.stride, grad);
          } else {
            load(grads.first + t * grads.stride, grad);
          }
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
    const MarchShape shape = march_shape(s, s.channels / 2 / forward_width<T, count>);
    forward_kernel<T, count, decltype(documents)::value>
        <<<shape.grid, shape.block, 0, stream>>>(in, y);
  });
}

int64_t canon_swiglu_partial_rows(const Sequences& s) { return march_shape(s, 1).block_rows(); }

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
    const MarchShape shape = march_shape(s, s.channels / 2 / backward_width<T, count>);
    backward_kernel<T, count, decltype(documents)::value>
        <<<shape.grid, shape.block, 0, stream>>>(in, grad_y, y, grad_gate_up, partial);
  });
}

template void canon_swiglu_forward(const CanonSwiGlu<float>&, float*, cudaStream_t);
template void canon_swiglu_forward(const CanonSwiGlu<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<float>&, const float*, float*, float*, float*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<bfloat16>&, const bfloat16*, bfloat16*, bfloat16*, float*, cudaStream_t);

}  // namespace forge::ops::cuda
