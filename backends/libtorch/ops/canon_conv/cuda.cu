#include "backends/libtorch/ops/canon_conv/cuda.cuh"

namespace forge::ops::cuda {
namespace {

// Channels of each of a thread's two vectors; the backward pass needs more registers for each.
constexpr int forward_width = 4, backward_width = 2;
constexpr int backward_blocks = 4;  // that a multiprocessor has registers for

/// y[t] = sum over j of w[K - 1 - j] x[t - j] [+ x[t]], taps across documents dropped.
/// Grid, block: as of all kernels over channel pairs (cuda.cuh). Shared memory: none.
/// Moves x and y once: 2 B T C elements.
template <class T, int taps, bool documents>
__global__ void __launch_bounds__(pair_threads)
    forward_kernel(CanonInput<T> in, TimeTiles tiles, T* y) {
  constexpr int width = forward_width, ring = ring_size<taps>;
  const Sequences& s = in.sequences;
  const ChannelPair pair = halves_pair<width>(threadIdx.x, s.channels);
  if (pair.a < 0) return;
  PairTaps<taps, width> w;
  w.load(in.weights, in.residual, pair);
  for_each_tile(s, tiles, [&](const TimeTile& tile) {
    const T* x = in.x + tile.first_token * s.channels;
    T* out = y + tile.first_token * s.channels;
    Prefetcher<T, ring, width> next_a, next_b;
    float x_a[ring][width], x_b[ring][width];
    DocumentWindow<ring, documents> docs;
    next_a.begin(x + pair.a, s.channels, tile.begin, tile.end);
    next_b.begin(x + pair.b, s.channels, tile.begin, tile.end);
    load_halo<halo_of<taps>>(x + pair.a, s.channels, tile.begin, x_a);
    load_halo<halo_of<taps>>(x + pair.b, s.channels, tile.begin, x_b);
    docs.begin(s, tile, tile.begin);
    for (int t = tile.begin; t < tile.end; t += ring) {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        float a[width], b[width];
        next_a.next(i, x_a[i]);
        next_b.next(i, x_b[i]);
        docs.load(s, tile, t + i, i);
        convolve<taps>(x_a, docs, w.side[0], i, a);
        convolve<taps>(x_b, docs, w.side[1], i, b);
        if (t + i >= tile.end) continue;
        store(out + (t + i) * s.channels + pair.a, a);
        store(out + (t + i) * s.channels + pair.b, b);
      }
    }
  });
}

/// grad_x[t] = sum over j of w[K - 1 - j] grad_y[t + j] [+ grad_y[t]], and for every block
/// sums[c, K - 1 - j] = sum over its tokens t of x[t] grad_y[t + j].
/// Grid, block: as above. Shared memory: that of write_tap_sums, at most 8 KiB.
/// Moves x, grad_y and grad_x once: 3 B T C elements, and a row of 4 C K bytes for each block.
template <class T, int taps, bool documents>
__global__ void __launch_bounds__(pair_threads, backward_blocks)
    backward_kernel(CanonInput<T> in, TimeTiles tiles, const T* grad_y, T* grad_x, float* partial) {
  constexpr int width = backward_width, halo = halo_of<taps>, ring = ring_size<taps>;
  const Sequences& s = in.sequences;
  const ChannelPair pair = halves_pair<width>(threadIdx.x, s.channels);
  PairTaps<taps, width> w, sums;
  sums.clear();
  if (pair.a >= 0) {
    w.load(in.weights, in.residual, pair);
    for_each_tile(s, tiles, [&](const TimeTile& tile) {
      const int64_t row = tile.first_token * s.channels;
      const int first = tile.begin - halo, last = min(tile.end + halo, tile.length);
      Prefetcher<T, ring, width> next_a, next_b, upstream_a, upstream_b;
      // The input of token t + i - halo goes with the gradient of token t + i, at index i.
      float x_a[width], x_b[width], grad_a[ring][width], grad_b[ring][width];
      DocumentWindow<ring, documents> docs;
      next_a.begin(in.x + row + pair.a, s.channels, first, tile.end);
      next_b.begin(in.x + row + pair.b, s.channels, first, tile.end);
      upstream_a.begin(grad_y + row + pair.a, s.channels, tile.begin, last);
      upstream_b.begin(grad_y + row + pair.b, s.channels, tile.begin, last);
      docs.begin(s, tile, tile.begin);
      for (int t = tile.begin; t < tile.end + halo; t += ring) {
#pragma unroll
        for (int i = 0; i < ring; ++i) {
          float a[width], b[width];
          upstream_a.next(i, grad_a[i]);
          upstream_b.next(i, grad_b[i]);
          docs.load(s, tile, t + i, i);
          next_a.next(i, x_a);
          next_b.next(i, x_b);
          const int token = t + i - halo;
          if (token < tile.begin || token >= tile.end) continue;
          accumulate_taps<taps>(grad_a, docs, x_a, i, sums.side[0]);
          accumulate_taps<taps>(grad_b, docs, x_b, i, sums.side[1]);
          convolve_transposed<taps>(grad_a, docs, w.side[0], i, a);
          convolve_transposed<taps>(grad_b, docs, w.side[1], i, b);
          store(grad_x + row + token * s.channels + pair.a, a);
          store(grad_x + row + token * s.channels + pair.b, b);
        }
      }
    });
  }
  write_tap_sums(sums, pair, s.channels, partial);
}

}  // namespace

template <class T>
void canon_conv_forward(const CanonInput<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  dispatch(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    const auto kernel = forward_kernel<T, taps, documents>;
    const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / forward_width);
    kernel<<<grid.blocks, pair_block, 0, stream>>>(in, grid.tiles, y);
    require_started();
  });
}

template <class T>
void canon_conv_backward(const CanonInput<T>& in,
                         const T* grad_y,
                         T* grad_x,
                         const AllocateRows& tap_sums,
                         cudaStream_t stream) {
  const Sequences& s = in.sequences;
  dispatch(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    const auto kernel = backward_kernel<T, taps, documents>;
    const PairGrid grid = pair_grid<taps>(kernel, s, s.channels / 2 / backward_width);
    float* partial = tap_sums(grid.blocks.y);
    if (s.batch * s.length == 0) return;
    kernel<<<grid.blocks, pair_block, 0, stream>>>(in, grid.tiles, grad_y, grad_x, partial);
    require_started();
  });
}

template void canon_conv_forward(const CanonInput<float>&, float*, cudaStream_t);
template void canon_conv_forward(const CanonInput<bfloat16>&, bfloat16*, cudaStream_t);
template void canon_conv_backward(
    const CanonInput<float>&, const float*, float*, const AllocateRows&, cudaStream_t);
template void canon_conv_backward(
    const CanonInput<bfloat16>&, const bfloat16*, bfloat16*, const AllocateRows&, cudaStream_t);

}  // namespace forge::ops::cuda
