#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/cuda.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of gate, and as many of up, of a thread, where their number allows it. The backward pass
// of a convolution needs more registers for each.
template <int taps>
constexpr int forward_width = taps == 0 ? 8 : 4;
template <int taps>
constexpr int backward_width = taps == 0 ? 8 : 2;
constexpr int backward_blocks = 4;  // that a multiprocessor has registers for

/// Calls run(width, a constant) with the widest of `best`, 2 and 1 that divides the channels.
template <int best, class Run>
void with_width(int64_t channels, const Run& run) {
  if (channels % 8 == 0) return run(std::integral_constant<int, best>{});
  if (channels % 2 == 0) return run(std::integral_constant<int, 2>{});
  run(std::integral_constant<int, 1>{});
}

/// With [g; u] = canon(gate_up): y = silu(g) u, silu(g) = g sigmoid(g).
/// Grid, block: as of all kernels over channel pairs (canon_conv/cuda.cuh), gate and up of the same
/// channels a pair. Shared memory: none.
/// Moves gate_up and y once: 3 B T I elements.
template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(pair_threads)
    forward_kernel(CanonInput<T> in, TimeTiles tiles, T* y) {
  constexpr int ring = ring_size<taps>;
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const ChannelPair pair = halves_pair<width>(threadIdx.x, s.channels);
  if (pair.a < 0) return;
  PairTaps<taps, width> w;
  w.load(in.weights, in.residual, pair);
  for_each_tile(s, tiles, [&](const TimeTile& tile) {
    const T* x = in.x + tile.first_token * s.channels;
    T* out = y + tile.first_token * half + pair.a;
    Prefetcher<T, ring, width> next_gate, next_up;
    float gates[ring][width], ups[ring][width];
    DocumentWindow<ring, documents> docs;
    next_gate.begin(x + pair.a, s.channels, tile.begin, tile.end);
    next_up.begin(x + pair.b, s.channels, tile.begin, tile.end);
    load_halo<halo_of<taps>>(x + pair.a, s.channels, tile.begin, gates);
    load_halo<halo_of<taps>>(x + pair.b, s.channels, tile.begin, ups);
    docs.begin(s, tile, tile.begin);
    for (int t = tile.begin; t < tile.end; t += ring) {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        float gate[width], up[width];
        next_gate.next(i, gates[i]);
        next_up.next(i, ups[i]);
        docs.load(s, tile, t + i, i);
        convolve<taps>(gates, docs, w.side[0], i, gate);
        convolve<taps>(ups, docs, w.side[1], i, up);
#pragma unroll
        for (int j = 0; j < width; ++j) gate[j] *= sigmoid(gate[j]) * up[j];
        if (t + i < tile.end) store(out + (t + i) * half, gate);
      }
    }
  });
}

/// Computes g, u and y again. With p = sigmoid(g):
///   grad_g = grad_y u p (1 + g - g p),  grad_u = grad_y g p,
/// then the transposed convolution of [grad_g; grad_u] gives grad_gate_up, and their products with
/// gate_up the sums for the taps' gradients. The halo behind a tile is computed twice.
/// Grid, block: as above. Shared memory: that of write_tap_sums, at most 8 KiB.
/// Moves gate_up, grad_y, y and grad_gate_up once: 6 B T I elements, and a row of 8 I K bytes for
/// each block.
template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(pair_threads, backward_blocks) backward_kernel(
    CanonInput<T> in, TimeTiles tiles, const T* grad_y, T* y, T* grad_gate_up, float* partial) {
  constexpr int halo = halo_of<taps>, ring = ring_size<taps>;
  const Sequences& s = in.sequences;
  const int64_t half = s.channels / 2;
  const ChannelPair pair = halves_pair<width>(threadIdx.x, s.channels);
  PairTaps<taps, width> w, sums;
  sums.clear();
  if (pair.a >= 0) {
    w.load(in.weights, in.residual, pair);
    for_each_tile(s, tiles, [&](const TimeTile& tile) {
      const T* x = in.x + tile.first_token * s.channels;
      T* out = y + tile.first_token * half + pair.a;
      T* grad_x = grad_gate_up + tile.first_token * s.channels;
      Prefetcher<T, ring, width> next_gate, next_up, upstream;
      // The convolution's inputs, and the gradients of its outputs.
      float gates[ring][width], ups[ring][width];
      float grad_gates[ring][width], grad_ups[ring][width];
      DocumentWindow<ring, documents> docs;
      const int last = min(tile.end + halo, tile.length);
      next_gate.begin(x + pair.a, s.channels, tile.begin, last);
      next_up.begin(x + pair.b, s.channels, tile.begin, last);
      upstream.begin(grad_y + tile.first_token * half + pair.a, half, tile.begin, last);
      load_halo<halo>(x + pair.a, s.channels, tile.begin, gates);
      load_halo<halo>(x + pair.b, s.channels, tile.begin, ups);
      docs.begin(s, tile, tile.begin);
      for (int t = tile.begin; t < tile.end + halo; t += ring) {
#pragma unroll
        for (int i = 0; i < ring; ++i) {
          float gate[width], up[width], grad[width], value[width];
          next_gate.next(i, gates[i]);
          next_up.next(i, ups[i]);
          upstream.next(i, grad);
          docs.load(s, tile, t + i, i);
          convolve<taps>(gates, docs, w.side[0], i, gate);
          convolve<taps>(ups, docs, w.side[1], i, up);
#pragma unroll
          for (int j = 0; j < width; ++j) {
            const float p = sigmoid(gate[j]), silu = gate[j] * p;
            value[j] = silu * up[j];
            grad_gates[i][j] = grad[j] * up[j] * p * (1 + gate[j] - silu);
            grad_ups[i][j] = grad[j] * silu;
          }
          if (t + i < tile.end) store(out + (t + i) * half, value);
          const int token = t + i - halo;
          if (token < tile.begin || token >= tile.end) continue;
          const int index = index_before<ring>(i, halo);
          accumulate_taps<taps>(grad_gates, docs, gates[index], i, sums.side[0]);
          accumulate_taps<taps>(grad_ups, docs, ups[index], i, sums.side[1]);
          convolve_transposed<taps>(grad_gates, docs, w.side[0], i, gate);
          convolve_transposed<taps>(grad_ups, docs, w.side[1], i, up);
          store(grad_x + token * s.channels + pair.a, gate);
          store(grad_x + token * s.channels + pair.b, up);
        }
      }
    });
  }
  write_tap_sums(sums, pair, s.channels, partial);
}

}  // namespace

template <class T>
void canon_swiglu_forward(const CanonInput<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  dispatch(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    with_width<forward_width<taps>>(s.channels / 2, [&](auto width) {
      const auto kernel = forward_kernel<T, taps, documents, width>;
      const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / width);
      kernel<<<grid.blocks, pair_block, 0, stream>>>(in, grid.tiles, y);
      require_started();
    });
  });
}

template <class T>
void canon_swiglu_backward(const CanonInput<T>& in,
                           const T* grad_y,
                           T* y,
                           T* grad_gate_up,
                           const AllocateRows& tap_sums,
                           cudaStream_t stream) {
  const Sequences& s = in.sequences;
  dispatch(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    with_width<backward_width<taps>>(s.channels / 2, [&](auto width) {
      const auto kernel = backward_kernel<T, taps, documents, width>;
      const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / width);
      float* partial = taps > 0 ? tap_sums(grid.blocks.y) : nullptr;
      if (s.batch * s.length == 0) return;
      kernel<<<grid.blocks, pair_block, 0, stream>>>(
          in, grid.tiles, grad_y, y, grad_gate_up, partial);
      require_started();
    });
  });
}

template void canon_swiglu_forward(const CanonInput<float>&, float*, cudaStream_t);
template void canon_swiglu_forward(const CanonInput<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_swiglu_backward(
    const CanonInput<float>&, const float*, float*, float*, const AllocateRows&, cudaStream_t);
template void canon_swiglu_backward(const CanonInput<bfloat16>&,
                                    const bfloat16*,
                                    bfloat16*,
                                    bfloat16*,
                                    const AllocateRows&,
                                    cudaStream_t);

}  // namespace forge::ops::cuda
