#pragma once

#include "backends/libtorch/ops/canon_conv/cuda.cuh"
#include "backends/libtorch/ops/short_conv/cuda.h"

// A lane of a warp owns a vector of neighbouring channels and scans a time tile, as Canon's kernels
// do (canon_conv/cuda.cuh); what follows the convolution stays in registers. The lanes of a head
// that gets length 1 lie side by side in one warp, as many as the next power of two, so that its
// length is a few exchanges between lanes.
// Grid: [columns of 32 lanes, blocks over time]. Block: 4 warps with a time tile each.
namespace forge::ops::cuda {

constexpr int conv_warps = 4, conv_threads = conv_warps * warp_size;

/// Divides the channels of the mixed parts among lanes; returns the number of lanes.
template <class T>
int place_lanes(PartPlaces<T>& parts, int width) {
  int next = 0;
  for (int i = 0; i < parts.count; ++i) {
    PartPlace<T>& part = parts.place[i];
    const int group = part.head_width > 0 ? part.head_width : width;
    part.lanes_of_head = 1;
    while (part.lanes_of_head * width < group) part.lanes_of_head *= 2;
    part.first_lane = (next + part.lanes_of_head - 1) / part.lanes_of_head * part.lanes_of_head;
    next = part.first_lane + part.channels / group * part.lanes_of_head;
  }
  return next;
}

template <class T>
int most_lanes_of_head(const PartPlaces<T>& parts) {
  int most = 1;
  for (int i = 0; i < parts.count; ++i) most = std::max(most, parts.place[i].lanes_of_head);
  return most;
}

template <class T>
bool short_conv_fits(const ShortConvPass<T>& in, int width) {
  const auto address = reinterpret_cast<uintptr_t>(in.x);
  const int64_t access = access_bytes<T>(width);
  bool fits = (in.taps == 0 || in.taps == 4) && address % access == 0 &&
              in.stride * int64_t{sizeof(T)} % access == 0;
  for (int i = 0; i < in.mixed.count; ++i) {
    const PartPlace<T>& part = in.mixed.place[i];
    fits = fits && part.first % width == 0 && part.channels % width == 0 &&
           part.head_width % width == 0 && part.head_width <= warp_size * width;
  }
  return fits;
}

/// A thread's lane: its channels and where they come from and go to. A lane without channels is not
/// active and takes part in exchanges alone.
template <class T>
struct ConvLane {
  int64_t channel;  ///< the first in the projection
  int64_t mixed;    ///< among the mixed ones
  T* data;          ///< of the part's token 0
  int64_t stride;   ///< of the part
  int lanes_of_head;
  bool has_length, active;
};

template <int width, class T>
__device__ __forceinline__ ConvLane<T> conv_lane(const ShortConvPass<T>& in) {
  const int lane = static_cast<int>(blockIdx.x) * warp_size + static_cast<int>(threadIdx.x % 32);
  ConvLane<T> out{0, 0, nullptr, 0, 1, false, false};
#pragma unroll
  for (int i = 0; i < most_projection_parts; ++i) {
    const PartPlace<T>& part = in.mixed.place[i];
    if (i >= in.mixed.count || lane < part.first_lane) continue;
    const int local = lane - part.first_lane, lanes = part.lanes_of_head;
    const int group = part.head_width > 0 ? part.head_width : width;
    const int head = local / lanes, in_head = local % lanes * width;
    const int channel = head * group + in_head;
    out.channel = part.first + channel;
    out.mixed = out.channel - in.first_mixed;
    out.data = part.data + channel;
    out.stride = part.channels;
    out.lanes_of_head = lanes;
    out.has_length = part.head_width > 0;
    out.active = in_head < group && channel < part.channels;
  }
  return out;
}

/// The taps of a lane's channels, current token first, and their bias.
template <int taps, int width>
struct ConvWeights {
  static constexpr int count = taps > 0 ? taps : 1;
  float tap[count][width], bias[width];

  template <class T>
  __device__ __forceinline__ void load(const ShortConvPass<T>& in, const ConvLane<T>& lane) {
#pragma unroll
    for (int i = 0; i < count; ++i) fill(tap[i], 0);
    fill(bias, 0);
    if (!lane.active) return;
    if constexpr (taps > 0) load_taps(in.weights, lane.mixed, false, tap);
    if (in.bias) load_input(in.bias + lane.mixed, bias);
  }
};

/// The sum over the lanes of a head. All lanes of the warp call it; `most` is the largest number of
/// lanes of a head in the grid.
__device__ __forceinline__ float sum_over_head(float x, int lanes, int most) {
  for (int distance = most / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, x, distance);
    if (distance < lanes) x += other;
  }
  return x;
}

/// Calls run(tile) for each of a warp's tiles.
template <class Run>
__device__ __forceinline__ void for_each_warp_tile(const Sequences& s,
                                                   const TimeTiles& tiles,
                                                   const Run& run) {
  for (unsigned index = blockIdx.y * conv_warps + threadIdx.x / warp_size; index < tiles.count;
       index += gridDim.y * conv_warps) {
    run(tiles.at(s, index));
  }
}

/// y[t] = s r with s = [silu](sum over j of w[K - 1 - j] x[t - j] + bias) and, for heads that get
/// length 1, r = 1 / sqrt(sum of s^2 over the head + eps).
/// Grid, block: as above. Shared memory: none. Moves the mixed channels and the results once: 2 B T
/// C elements.
template <class T, int taps, int width>
__global__ void __launch_bounds__(conv_threads)
    short_conv_forward_kernel(ShortConvPass<T> in, int most_lanes, TimeTiles tiles) {
  constexpr int ring = ring_size<taps>;
  const ConvLane<T> lane = conv_lane<width>(in);
  ConvWeights<taps, width> w;
  w.load(in, lane);
  for_each_warp_tile(in.sequences, tiles, [&](const TimeTile& tile) {
    const T* x = in.x + tile.first_token * in.stride + lane.channel;
    T* out = lane.data + tile.first_token * lane.stride;
    const DocumentWindow<ring, false> docs{};
    Prefetcher<T, ring, width> next;
    float inputs[ring][width];
    next.begin(x, in.stride, tile.begin, lane.active ? tile.end : 0);
#pragma unroll
    for (int i = 0; i < ring; ++i) fill(inputs[i], 0);
    if (lane.active) load_halo<halo_of<taps>>(x, in.stride, tile.begin, inputs);
    for (int t = tile.begin; t < tile.end; t += ring) {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        float y[width], squares = 0;
        next.next(i, inputs[i]);
        convolve<taps>(inputs, docs, w.tap, i, y);
#pragma unroll
        for (int j = 0; j < width; ++j) {
          y[j] += w.bias[j];
          if (in.silu) y[j] *= sigmoid(y[j]);
          squares += y[j] * y[j];
        }
        if (most_lanes > 1) squares = sum_over_head(squares, lane.lanes_of_head, most_lanes);
        const float scale = lane.has_length ? rsqrtf(squares + in.length_eps) : 1.0f;
#pragma unroll
        for (int j = 0; j < width; ++j) y[j] *= scale;
        if (lane.active && t + i < tile.end) store(out + (t + i) * lane.stride, y);
      }
    }
  });
}

/// Over c, what goes into the activation, its gradient: with s = [silu](c) and y = s r,
/// ds = r (dy - y (y . dy)).
template <class T, int width>
__device__ __forceinline__ void activation_gradient(const ShortConvPass<T>& in,
                                                    const ConvLane<T>& lane,
                                                    int most_lanes,
                                                    const float (&grad_y)[width],
                                                    float (&c)[width]) {
  float value[width], slope[width], squares = 0, along = 0;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    const float s = in.silu ? sigmoid(c[j]) : 1.0f;
    value[j] = c[j] * s;
    slope[j] = s * (1 + c[j] * (1 - s));
    squares += value[j] * value[j];
    along += value[j] * grad_y[j];
  }
  float scale = 1;
  if (most_lanes > 1) {
    squares = sum_over_head(squares, lane.lanes_of_head, most_lanes);
    along = sum_over_head(along, lane.lanes_of_head, most_lanes);
  }
  if (lane.has_length) {
    scale = rsqrtf(squares + in.length_eps);
    along *= scale * scale;
  } else {
    along = 0;
  }
#pragma unroll
  for (int j = 0; j < width; ++j) c[j] = scale * (grad_y[j] - value[j] * along) * slope[j];
}

/// Copies the gradients of a warp's tiles into the channels that are not mixed.
template <class T>
__device__ __forceinline__ void copy_others(const ShortConvPass<T>& in,
                                            const ShortConvGradient<T>& grad,
                                            const TimeTiles& tiles) {
  const int lane = static_cast<int>(threadIdx.x % warp_size);
  for_each_warp_tile(in.sequences, tiles, [&](const TimeTile& tile) {
    const int64_t first = tile.first_token + tile.begin;
    const int tokens = tile.end - tile.begin;
    for (int i = 0; i < grad.others.count; ++i) {
      const PartPlace<T>& part = grad.others.place[i];
      const T* from = part.data + first * part.channels;
      T* to = grad.x + first * grad.stride + part.first;
      constexpr int wide = 16 / sizeof(T);
      if (part.lanes_of_head == wide) {  // its places are multiples of whole vectors
        const int vectors = part.channels / wide;
#pragma unroll 4
        for (int n = lane; n < tokens * vectors; n += warp_size) {
          const int token = n / vectors, c = (n - token * vectors) * wide;
          Vector<T, wide> vector{};
          if (part.data) vector = load_vector<T, wide>(from + token * part.channels + c);
          *reinterpret_cast<Vector<T, wide>*>(to + token * grad.stride + c) = vector;
        }
      } else {
        for (int n = lane; n < tokens * part.channels; n += warp_size) {
          const int token = n / part.channels, c = n - token * part.channels;
          to[token * grad.stride + c] =
              part.data ? from[token * part.channels + c] : from_float<T>(0);
        }
      }
    }
  });
}

/// Adds a block's sums up, warp after warp, and writes its row of them. All threads call it.
/// Shared memory: 512 width (taps + 1) bytes.
template <int taps, int width, class T>
__device__ __forceinline__ void write_conv_sums(const ConvWeights<taps, width>& sums,
                                                const ShortConvPass<T>& in,
                                                const ConvLane<T>& lane,
                                                float* partial) {
  constexpr int of_taps = width * taps, count = of_taps + width;
  __shared__ float memory[conv_warps][count][warp_size];
  const int warp = static_cast<int>(threadIdx.x / warp_size);
  const int column = static_cast<int>(threadIdx.x % warp_size);
#pragma unroll
  for (int j = 0; j < width; ++j) {
#pragma unroll
    for (int tap = 0; tap < taps; ++tap)
      memory[warp][j * taps + taps - 1 - tap][column] = sums.tap[tap][j];
    memory[warp][of_taps + j][column] = sums.bias[j];
  }
  __syncthreads();
  if (!lane.active) return;
  const int64_t channels = in.sequences.channels, of_all_taps = channels * taps;
  float* row = partial + blockIdx.y * (of_all_taps + (in.bias ? channels : 0));
  for (int n = warp; n < (in.bias ? count : of_taps); n += conv_warps) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < conv_warps; ++i) sum += memory[i][n][column];
    row[n < of_taps ? lane.mixed * taps + n : of_all_taps + lane.mixed + n - of_taps] = sum;
  }
}

/// With g[t] the gradient of what goes into the activation, which is computed again:
///   grad_x[t] = sum over j of w[K - 1 - j] g[t + j],
/// and for every block sums over its tokens, of x[t] g[t + j] for w[c, K - 1 - j], of g for the
/// bias. The last column of blocks copies the gradients of what is not mixed, where there is any.
/// Grid, block: as above. Shared memory: that of write_conv_sums, at most 20 KiB.
/// Moves x, grad_y and grad_x once: 3 B T C elements, 2 for each channel that is not mixed, and a
/// row of 4 C (K + 1) bytes for each block.
template <class T, int taps, int width>
__global__ void __launch_bounds__(conv_threads, width == 4 ? 4 : 2)
    short_conv_backward_kernel(ShortConvPass<T> in,
                               ShortConvGradient<T> grad,
                               int most_lanes,
                               TimeTiles tiles,
                               float* partial) {
  constexpr int halo = halo_of<taps>, ring = ring_size<taps>;
  if (grad.others.count > 0 && blockIdx.x + 1 == gridDim.x) return copy_others(in, grad, tiles);
  const ConvLane<T> lane = conv_lane<width>(in);
  ConvWeights<taps, width> w, sums{};
  w.load(in, lane);
  for_each_warp_tile(in.sequences, tiles, [&](const TimeTile& tile) {
    const T* x = in.x + tile.first_token * in.stride + lane.channel;
    const T* grad_y = lane.data + tile.first_token * lane.stride;
    T* out = grad.x + tile.first_token * grad.stride + lane.channel;
    const int last = lane.active ? min(tile.end + halo, tile.length) : 0;
    const DocumentWindow<ring, false> docs{};
    Prefetcher<T, ring, width> next, upstream;
    float inputs[ring][width], g[ring][width];
    next.begin(x, in.stride, tile.begin, last);
    upstream.begin(grad_y, lane.stride, tile.begin, last);
#pragma unroll
    for (int i = 0; i < ring; ++i) {
      fill(inputs[i], 0);
      fill(g[i], 0);
    }
    if (lane.active) load_halo<halo>(x, in.stride, tile.begin, inputs);
    for (int t = tile.begin; t < tile.end + halo; t += ring) {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        float of_y[width], of_x[width];
        next.next(i, inputs[i]);
        upstream.next(i, of_y);  // 0 behind the row, and so is g
        convolve<taps>(inputs, docs, w.tap, i, g[i]);
#pragma unroll
        for (int j = 0; j < width; ++j) g[i][j] += w.bias[j];
        activation_gradient(in, lane, most_lanes, of_y, g[i]);
        const int token = t + i - halo, index = index_before<ring>(i, halo);
        if (token < tile.begin || token >= tile.end) continue;
        accumulate_taps<taps>(g, docs, inputs[index], i, sums.tap);
#pragma unroll
        for (int j = 0; j < width; ++j) sums.bias[j] += g[index][j];
        convolve_transposed<taps>(g, docs, w.tap, i, of_x);
        if (lane.active) store(out + token * grad.stride, of_x);
      }
    }
  });
  write_conv_sums(sums, in, lane, partial);
}

/// How a pass is divided. `resident` blocks run at a time.
struct ConvGrid {
  unsigned columns, blocks;
  TimeTiles tiles;
};

inline ConvGrid conv_grid(const Sequences& s, int taps, int columns, int64_t resident) {
  const int64_t rows = std::max<int64_t>(resident / columns, 1);
  const TimeTiles tiles =
      taps > 0 ? balanced_tiles(s, rows * conv_warps, 4) : tiles_of_size(s, tile_without_taps);
  const int64_t work = (int64_t{tiles.count} + conv_warps - 1) / conv_warps;
  return {
      static_cast<unsigned>(columns), static_cast<unsigned>(balanced_blocks(work, rows)), tiles};
}

/// Calls run(taps, width), constants: few channels a lane where a head has room in a warp so.
template <class T, class Run>
void dispatch_conv(const ShortConvPass<T>& in, bool prefers_wide, const Run& run) {
  const auto with_width = [&](auto taps) {
    const bool wide = short_conv_fits(in, 8) && (prefers_wide || !short_conv_fits(in, 4));
    wide ? run(taps, std::integral_constant<int, 8>{})
         : run(taps, std::integral_constant<int, 4>{});
  };
  in.taps == 0 ? with_width(std::integral_constant<int, 0>{})
               : with_width(std::integral_constant<int, 4>{});
}

inline int columns_of(int lanes) { return (lanes + warp_size - 1) / warp_size; }

/// start(kernel, grid x, grid y, threads, arguments…) runs a kernel, start.resident(kernel,
/// threads) says how many blocks run at a time: on a GPU or in a test's emulation of it.
template <class T, class Start>
void run_short_conv_forward(ShortConvPass<T> in, const Start& start) {
  if (in.sequences.batch * in.sequences.length == 0) return;
  dispatch_conv(in, true, [&](auto taps, auto width) {
    const auto kernel = short_conv_forward_kernel<T, taps, width>;
    const int columns = columns_of(place_lanes(in.mixed, width));
    const ConvGrid grid =
        conv_grid(in.sequences, taps, columns, start.resident(kernel, conv_threads));
    start(kernel,
          grid.columns,
          grid.blocks,
          conv_threads,
          in,
          most_lanes_of_head(in.mixed),
          grid.tiles);
  });
}

template <class T, class Start>
void run_short_conv_backward(ShortConvPass<T> in,
                             ShortConvGradient<T> grad,
                             const AllocateRows& sums,
                             const Start& start) {
  constexpr int wide = 16 / sizeof(T);
  for (int i = 0; i < grad.others.count; ++i) {
    PartPlace<T>& part = grad.others.place[i];
    const bool fits = part.first % wide == 0 && part.channels % wide == 0 &&
                      grad.stride % wide == 0 && reinterpret_cast<uintptr_t>(grad.x) % 16 == 0 &&
                      reinterpret_cast<uintptr_t>(part.data) % 16 == 0;
    part.lanes_of_head = fits ? wide : 1;
  }
  dispatch_conv(in, false, [&](auto taps, auto width) {
    const auto kernel = short_conv_backward_kernel<T, taps, width>;
    const int columns = columns_of(place_lanes(in.mixed, width)) + (grad.others.count > 0 ? 1 : 0);
    const ConvGrid grid =
        conv_grid(in.sequences, taps, columns, start.resident(kernel, conv_threads));
    float* partial = sums(grid.blocks);
    if (in.sequences.batch * in.sequences.length == 0) return;
    start(kernel,
          grid.columns,
          grid.blocks,
          conv_threads,
          in,
          grad,
          most_lanes_of_head(in.mixed),
          grid.tiles,
          partial);
  });
}

}  // namespace forge::ops::cuda
