#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/units.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of gate, and as many of up, that a thread takes where their number allows it. With a
// convolution the way back keeps more for each.
template <int taps>
constexpr int forward_width = taps == 0 ? 8 : 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 8 : 2;
constexpr int backward_blocks = 4;  // that a multiprocessor shall have registers for

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
__global__ void __launch_bounds__(unit_threads)
    forward_kernel(CanonSwiGlu<T> in, Stretches stretches, T* y) {
  constexpr int reach = taps > 0 ? taps - 1 : 0, round = slots<taps>;
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  if (unit.a < 0) return;
  Taps<taps, width> w;
  w.load(in.weights, in.residual, unit);
  for_each_stretch(s, stretches, [&](const Stretch& stretch) {
    const T* x = in.gate_up + stretch.first_token * s.channels;
    T* out = y + stretch.first_token * half + unit.a;
    Incoming<T, round, width> next_gate, next_up;
    float gates[round][width], ups[round][width];
    DocumentRing<round, documents> docs;
    next_gate.begin(x + unit.a, s.channels, stretch.begin, stretch.end);
    next_up.begin(x + unit.b, s.channels, stretch.begin, stretch.end);
    fill_before<reach>(x + unit.a, s.channels, stretch.begin, gates);
    fill_before<reach>(x + unit.b, s.channels, stretch.begin, ups);
    docs.begin(s, stretch, stretch.begin);
    for (int t = stretch.begin; t < stretch.end; t += round) {
#pragma unroll
      for (int i = 0; i < round; ++i) {
        float gate[width], up[width];
        next_gate.take(i, gates[i]);
        next_up.take(i, ups[i]);
        docs.take(s, stretch, t + i, i);
        convolve<taps>(gates, docs, w.of[0], i, gate);
        convolve<taps>(ups, docs, w.of[1], i, up);
#pragma unroll
        for (int j = 0; j < width; ++j) gate[j] *= sigmoid(gate[j]) * up[j];
        if (t + i < stretch.end) store(out + (t + i) * half, gate);
      }
    }
  });
}

template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(unit_threads, backward_blocks)
    backward_kernel(CanonSwiGlu<T> in,
                    Stretches stretches,
                    const T* grad_y,
                    T* y,
                    T* grad_gate_up,
                    float* partial) {
  constexpr int reach = taps > 0 ? taps - 1 : 0, round = slots<taps>;
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const Unit unit = unit_of<width>(threadIdx.x, s.channels);
  Taps<taps, width> w, sums;
  sums.clear();
  if (unit.a >= 0) {
    w.load(in.weights, in.residual, unit);
    for_each_stretch(s, stretches, [&](const Stretch& stretch) {
      const T* x = in.gate_up + stretch.first_token * s.channels;
      T* out = y + stretch.first_token * half + unit.a;
      T* grad_x = grad_gate_up + stretch.first_token * s.channels;
      Incoming<T, round, width> next_gate, next_up, upstream;
      float gates[round][width], ups[round][width];
      // Of the convolution's outputs; those behind the stretch read it too.
      float grad_gates[round][width], grad_ups[round][width];
      DocumentRing<round, documents> docs;
      const int last = min(stretch.end + reach, stretch.length);
      next_gate.begin(x + unit.a, s.channels, stretch.begin, last);
      next_up.begin(x + unit.b, s.channels, stretch.begin, last);
      upstream.begin(grad_y + stretch.first_token * half + unit.a, half, stretch.begin, last);
      fill_before<reach>(x + unit.a, s.channels, stretch.begin, gates);
      fill_before<reach>(x + unit.b, s.channels, stretch.begin, ups);
      docs.begin(s, stretch, stretch.begin);
      for (int t = stretch.begin; t < stretch.end + reach; t += round) {
#pragma unroll
        for (int i = 0; i < round; ++i) {
          float gate[width], up[width], grad[width], value[width];
          next_gate.take(i, gates[i]);
          next_up.take(i, ups[i]);
          upstream.take(i, grad);
          docs.take(s, stretch, t + i, i);
          convolve<taps>(gates, docs, w.of[0], i, gate);
          convolve<taps>(ups, docs, w.of[1], i, up);
#pragma unroll
          for (int j = 0; j < width; ++j) {
            const float share = sigmoid(gate[j]), silu = gate[j] * share;
            value[j] = silu * up[j];
            grad_gates[i][j] = grad[j] * up[j] * share * (1 + gate[j] - silu);
            grad_ups[i][j] = grad[j] * silu;
          }
          if (t + i < stretch.end) store(out + (t + i) * half, value);
          const int token = t + i - reach;
          if (token < stretch.begin || token >= stretch.end) continue;
          const int own = slot_before<round>(i, reach);
          add_tap_products<taps>(grad_gates, docs, gates[own], i, sums.of[0]);
          add_tap_products<taps>(grad_ups, docs, ups[own], i, sums.of[1]);
          gather<taps>(grad_gates, docs, w.of[0], i, gate);
          gather<taps>(grad_ups, docs, w.of[1], i, up);
          store(grad_x + token * s.channels + unit.a, gate);
          store(grad_x + token * s.channels + unit.b, up);
        }
      }
    });
  }
  write_tap_sums(sums, unit, s.channels, partial);
}

/// Calls run(taps, documents, width) of the way back, all constants.
template <class T, class Run>
void with_backward_kind(const CanonSwiGlu<T>& in, const Run& run) {
  with_taps(in.taps, in.sequences.doc_ids, [&](auto taps, auto documents) {
    with_width<backward_width<decltype(taps)::value>>(
        in.sequences.channels / 2, [&](auto width) { run(taps, documents, width); });
  });
}

template <class T, int taps, bool documents, int width>
UnitGrid backward_grid(const Sequences& s) {
  return unit_grid<taps>(backward_kernel<T, taps, documents, width>, s, s.channels / 2 / width);
}

}  // namespace

template <class T>
void canon_swiglu_forward(const CanonSwiGlu<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    constexpr int count = decltype(taps)::value;
    with_width<forward_width<count>>(s.channels / 2, [&](auto width) {
      constexpr int channels = decltype(width)::value;
      const auto kernel = forward_kernel<T, count, decltype(documents)::value, channels>;
      const UnitGrid grid = unit_grid<count>(kernel, s, s.channels / 2 / channels);
      kernel<<<grid.blocks, unit_block, 0, stream>>>(in, grid.stretches, y);
    });
  });
}

template <class T>
int64_t canon_swiglu_partial_rows(const CanonSwiGlu<T>& in) {
  int64_t rows = 0;
  with_backward_kind(in, [&](auto taps, auto documents, auto width) {
    rows =
        backward_grid<T, decltype(taps)::value, decltype(documents)::value, decltype(width)::value>(
            in.sequences)
            .blocks.y;
  });
  return rows;
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
  with_backward_kind(in, [&](auto taps, auto documents, auto width) {
    constexpr int count = decltype(taps)::value, channels = decltype(width)::value;
    constexpr bool several = decltype(documents)::value;
    const UnitGrid grid = backward_grid<T, count, several, channels>(s);
    backward_kernel<T, count, several, channels><<<grid.blocks, unit_block, 0, stream>>>(
        in, grid.stretches, grad_y, y, grad_gate_up, partial);
  });
}

template void canon_swiglu_forward(const CanonSwiGlu<float>&, float*, cudaStream_t);
template void canon_swiglu_forward(const CanonSwiGlu<bfloat16>&, bfloat16*, cudaStream_t);
template int64_t canon_swiglu_partial_rows(const CanonSwiGlu<float>&);
template int64_t canon_swiglu_partial_rows(const CanonSwiGlu<bfloat16>&);
template void canon_swiglu_backward(
    const CanonSwiGlu<float>&, const float*, float*, float*, float*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonSwiGlu<bfloat16>&, const bfloat16*, bfloat16*, bfloat16*, float*, cudaStream_t);

}  // namespace forge::ops::cuda
