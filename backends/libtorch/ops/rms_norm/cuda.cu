#include "backends/libtorch/ops/rms_norm/cuda.h"

#include "backends/libtorch/ops/canon_conv/cuda.cuh"

// A group of warps holds all channels of a few neighbouring tokens in registers: every input is
// read once, sums over channels are warp shuffles, and the tokens that the taps read are in the
// same thread. A group takes time tiles (canon_conv/cuda.cuh), one after the other.
namespace forge::ops::cuda {
namespace {

// Channels of a thread. The backward pass of a convolution needs more registers for each. Wide rows
// need more channels a thread, so that the registers suffice for a block's threads.
constexpr int forward_width = 8, forward_width_of_many = 16;
constexpr int backward_width = 4, backward_width_of_many = 8;
constexpr int forward_threads = 256, backward_threads = 512;  // of a block, at most
static_assert(most_norm_channels == forward_threads * forward_width_of_many &&
              most_norm_channels == backward_threads * backward_width_of_many);
constexpr int most_warps = backward_threads / warp_size;

// Tokens of one reduction over channels.
constexpr int forward_batch = 4, backward_batch = 2;

/// Groups of warps in a block. A group has as many warps as the channels of a token need.
struct WarpGroups {
  int warps, count;

  unsigned threads() const { return static_cast<unsigned>(warps * count * warp_size); }
};

// Warps of a block that small groups share.
template <int taps>
constexpr int forward_warps = taps == 0 ? 8 : 2;
constexpr int backward_warps = 8;

template <int width>
WarpGroups groups_of(int64_t channels, int warps_of_block) {
  const int warps = static_cast<int>((channels + warp_size * width - 1) / (warp_size * width));
  return {warps, std::max(1, warps_of_block / warps)};
}

/// A thread's group in its block, and the first of its channels.
struct GroupLane {
  int group, channel;
  bool active;  ///< the token has that channel
};

template <int width>
__device__ __forceinline__ GroupLane lane_of(const WarpGroups& groups, int64_t channels) {
  const int threads = groups.warps * warp_size, group = threadIdx.x / threads;
  const int channel = (threadIdx.x - group * threads) * width;
  return {group, channel, channel < channels};
}

/// Waits for the warps of the thread's group.
__device__ __forceinline__ void wait_for_group(const WarpGroups& groups, const GroupLane& lane) {
  // Barrier 0 is that of the whole block.
  asm volatile("bar.sync %0, %1;" ::"r"(lane.group + 1), "r"(groups.warps * warp_size) : "memory");
}

/// Sums over the channels of several tokens, in all of the group's threads. Warps exchange theirs
/// in `memory`. Consecutive calls, counted by `call`, use its two halves in turn, so one barrier a
/// call is enough.
template <int count>
__device__ __forceinline__ void sum_over_group(float (&sums)[count],
                                               const WarpGroups& groups,
                                               const GroupLane& lane,
                                               float (&memory)[2][most_warps][count],
                                               int call) {
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = warp_sum(sums[i]);
  if (groups.warps == 1) return;
  float(&of_warps)[most_warps][count] = memory[call & 1];
  if (threadIdx.x % warp_size == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i) of_warps[threadIdx.x / warp_size][i] = sums[i];
  }
  wait_for_group(groups, lane);
  fill(sums, 0);
  for (int warp = 0; warp < groups.warps; ++warp) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += of_warps[lane.group * groups.warps + warp][i];
  }
}

/// Calls run(tile, active) for each of a group's tiles. All threads of the block call it equally
/// often, because groups share barriers; those that are not active write nothing.
template <class Run>
__device__ __forceinline__ void for_each_tile(const Sequences& s,
                                              const TimeTiles& tiles,
                                              const WarpGroups& groups,
                                              const GroupLane& lane,
                                              const Run& run) {
  for (unsigned first = blockIdx.x * groups.count; first < tiles.count;
       first += gridDim.x * groups.count) {
    const unsigned index = first + lane.group;
    // A group without a tile repeats the last one.
    run(tiles.at(s, min(index, tiles.count - 1)), lane.active && index < tiles.count);
  }
}

/// The norm's weights of a thread's channels, and the taps where there are any, current token
/// first.
template <int taps, int width>
struct ThreadWeights {
  static constexpr int count = taps > 0 ? taps : 1;
  float norm[width], tap[count][width];

  template <class T>
  __device__ __forceinline__ void load_from(const NormCanon<T>& in, const GroupLane& lane) {
    fill(norm, 0);
#pragma unroll
    for (int i = 0; i < count; ++i) fill(tap[i], taps > 0 ? 0 : 1);
    if (!lane.active) return;
    load_input(in.norm_weights + lane.channel, norm);
    if constexpr (taps > 0) load_taps(in.tap_weights, lane.channel, in.residual, tap);
  }
  __device__ __forceinline__ void products(float (&out)[count][width]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
#pragma unroll
      for (int j = 0; j < width; ++j) out[i][j] = tap[i][j] * norm[j];
    }
  }
};

/// With n[t] = x[t] / rms(x[t]), rms(x) = sqrt(mean(x^2) + eps):
///   y[t] = sum over j of w_tap[K - 1 - j] w_norm n[t - j] [+ w_norm n[t]]; without taps w_norm
///   n[t].
/// Grid: at most as many blocks as are resident, over groups of time tiles. Block: 2 warps, without
/// taps 8, or as many as a token needs, at most 256 threads. Shared memory: 512 bytes.
/// Moves x and y once: 2 B T C elements, and 4 B T bytes of scales.
template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(forward_threads)
    forward_kernel(NormCanon<T> in, WarpGroups groups, TimeTiles tiles, T* y, float* scales) {
  constexpr int halo = halo_of<taps>, kept = ThreadWeights<taps, width>::count;
  constexpr int batch = forward_batch;
  __shared__ float memory[2][most_warps][batch];
  const Sequences& s = in.sequences;
  const GroupLane lane = lane_of<width>(groups, s.channels);
  float weights[kept][width];
  {
    ThreadWeights<taps, width> stored;
    stored.load_from(in, lane);
    stored.products(weights);
  }
  const float inverse_channels = 1 / static_cast<float>(s.channels);
  int call = 0;
  for_each_tile(s, tiles, groups, lane, [&](const TimeTile& tile, bool active) {
    const int64_t offset = tile.first_token * in.stride + lane.channel;
    // The batch before the tile holds its halo.
    const int first = tile.begin - (halo > 0 ? batch : 0);
    Prefetcher<T, batch, width> inputs;
    float normal[batch][width];
    DocumentWindow<batch, documents> docs;
    inputs.begin(in.x + offset, in.stride, first, active ? tile.end : 0);
    docs.begin(s, tile, first);
    for (int t = first; t < tile.end; t += batch) {
      float x[batch][width], scale[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        inputs.next(i, x[i]);
        scale[i] = 0;
#pragma unroll
        for (int j = 0; j < width; ++j) scale[i] += x[i][j] * x[i][j];
      }
      sum_over_group(scale, groups, lane, memory, call++);
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        scale[i] = rsqrtf(scale[i] * inverse_channels + in.eps);
#pragma unroll
        for (int j = 0; j < width; ++j) normal[i][j] = x[i][j];
        normalise<T>(normal[i], scale[i], in.round_before_weight);
        docs.load(s, tile, t + i, i);
        if (!active || t < tile.begin || t + i >= tile.end) continue;
        float out[width];
        convolve<kept>(normal, docs, weights, i, out);
        store(y + offset + (t + i) * in.stride, out);
        if (lane.channel == 0) scales[tile.first_token + t + i] = scale[i];
      }
    }
  });
}

/// The gradients of a thread's weights from sums[j] = sum over t of n[t] grad_y[t + j]:
///   of w_norm: sum over j of w_tap[K - 1 - j] sums[j];  of w_tap[K - 1 - j]: w_norm sums[j].
template <int taps, int width, int kept>
__device__ __forceinline__ void write_sums(const float (&sums)[kept][width],
                                           const ThreadWeights<taps, width>& weights,
                                           const GroupLane& lane,
                                           int64_t channels,
                                           float* row) {
  if (!lane.active) return;
#pragma unroll
  for (int j = 0; j < width; ++j) {
    float of_norm = 0;
#pragma unroll
    for (int tap = 0; tap < kept; ++tap) {
      of_norm += weights.tap[tap][j] * sums[tap][j];
      if constexpr (taps > 0) {
        row[channels + (lane.channel + j) * taps + taps - 1 - tap] = weights.norm[j] * sums[tap][j];
      }
    }
    row[lane.channel + j] = of_norm;
  }
}

/// With s = 1 / rms(x[t]), n = s x, and g[t] = the transposed convolution of grad_y under the
/// products of both weights:
///   grad_x[t] = s g[t] - x[t] s^3 mean(x[t] g[t]) [+ grad_residual[t]],
/// and the sums for the weights' gradients, a row of `partial` for each block. y as in the forward
/// pass, if it is not null.
/// Grid: as above. Block: 8 warps, or as many as a token needs, at most 512 threads. Shared memory:
/// 256 bytes, and 4 C (1 + K) bytes for each group where a block has several.
/// Moves x, grad_y, grad_residual, y and grad_x once: 5 B T C elements, and 4 B T bytes of scales.
template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(backward_threads) backward_kernel(NormCanon<T> in,
                                                                    NormCanonBackward<T> pass,
                                                                    WarpGroups groups,
                                                                    TimeTiles tiles,
                                                                    float* partial) {
  constexpr int halo = halo_of<taps>, kept = ThreadWeights<taps, width>::count;
  constexpr int ring = ring_size<taps>, batch = backward_batch;
  __shared__ float memory[2][most_warps][batch];
  const Sequences& s = in.sequences;
  const GroupLane lane = lane_of<width>(groups, s.channels);
  float weights[kept][width], sums[kept][width];
  {
    ThreadWeights<taps, width> stored;
    stored.load_from(in, lane);
    stored.products(weights);
  }
#pragma unroll
  for (int i = 0; i < kept; ++i) fill(sums[i], 0);
  const float inverse_channels = 1 / static_cast<float>(s.channels);
  int call = 0;
  for_each_tile(s, tiles, groups, lane, [&](const TimeTile& tile, bool active) {
    const int64_t offset = tile.first_token * in.stride + lane.channel;
    const float* of_tokens = pass.scales + tile.first_token;
    const int end = active ? tile.end : 0;
    // y reads tokens before the tile, grad_x gradients behind it: index i of the gradients is token
    // t + i + halo.
    Prefetcher<T, batch, width> inputs, residual, upstream;
    float normal[ring][width], grad[ring][width];
    DocumentWindow<ring, documents> docs, docs_of_grad;
    inputs.begin(in.x + offset, in.stride, tile.begin, end);
    residual.begin(
        pass.grad_residual + offset, in.stride, tile.begin, pass.grad_residual ? end : 0);
    upstream.begin(pass.grad_y + offset, in.stride, tile.begin + halo, active ? tile.length : 0);
#pragma unroll
    for (int lag = 1; lag <= halo; ++lag) {
      const int t = tile.begin - lag, ahead = tile.begin + halo - lag;
      float(&before)[width] = normal[index_before<ring>(0, lag)];
      float(&behind)[width] = grad[index_before<ring>(0, lag)];
      fill(before, 0);
      fill(behind, 0);
      if (active && t >= 0) {
        load_input(in.x + offset + t * in.stride, before);
        normalise<T>(before, __ldg(of_tokens + t), in.round_before_weight);
      }
      if (active && ahead < tile.length)
        load_input(pass.grad_y + offset + ahead * in.stride, behind);
    }
    docs.begin(s, tile, tile.begin);
    docs_of_grad.begin(s, tile, tile.begin + halo);
    for (int begin = tile.begin; begin < tile.end; begin += ring) {
#pragma unroll
      for (int part = 0; part < ring; part += batch) {
        const int t = begin + part;
        // Of each token, the gradient of its normalised values, and its product with them.
        float x[batch][width], of_normal[batch][width], products[batch], scale[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const int index = part + i;
          scale[i] = t + i < tile.end ? __ldg(of_tokens + t + i) : 0.0f;
          inputs.next(i, x[i]);
          upstream.next(i, grad[index]);
          docs.load(s, tile, t + i, index);
          docs_of_grad.load(s, tile, t + i + halo, index);
#pragma unroll
          for (int j = 0; j < width; ++j) normal[index][j] = x[i][j];
          normalise<T>(normal[index], scale[i], in.round_before_weight);
          convolve_transposed<kept>(grad, docs_of_grad, weights, index, of_normal[i]);
          accumulate_taps<kept>(grad, docs_of_grad, normal[index], index, sums);
          products[i] = 0;
#pragma unroll
          for (int j = 0; j < width; ++j) products[i] += x[i][j] * of_normal[i][j];
          if (!pass.y || !active || t + i >= tile.end) continue;
          float out[width];
          convolve<kept>(normal, docs, weights, index, out);
          store(pass.y + offset + (t + i) * in.stride, out);
        }
        sum_over_group(products, groups, lane, memory, call++);
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const float factor = products[i] * inverse_channels * scale[i] * scale[i] * scale[i];
          float out[width];
          residual.next(i, out);
          if (!active || t + i >= tile.end) continue;
#pragma unroll
          for (int j = 0; j < width; ++j) out[j] += scale[i] * of_normal[i][j] - factor * x[i][j];
          store(pass.grad_x + offset + (t + i) * in.stride, out);
        }
      }
    }
  });
  ThreadWeights<taps, width> stored;
  stored.load_from(in, lane);
  const int64_t columns = s.channels * (1 + taps);
  float* row = partial + blockIdx.x * columns;
  if (groups.count > 1) {
    constexpr int most_columns = backward_warps * warp_size * width * (1 + taps);
    __shared__ float of_groups[most_columns];
    write_sums(sums, stored, lane, s.channels, of_groups + lane.group * columns);
    __syncthreads();
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
      float sum = 0;
      for (int group = 0; group < groups.count; ++group) sum += of_groups[group * columns + i];
      row[i] = sum;
    }
    return;
  }
  write_sums(sums, stored, lane, s.channels, row);
}

/// As dispatch, with the channels of a thread as a third constant.
template <int width_of_few, int width_of_many, class Run>
void dispatch_width(const Sequences& s, int taps, bool few, const Run& run) {
  dispatch(taps, s.doc_ids, [&](auto count, auto documents) {
    few ? run(count, documents, std::integral_constant<int, width_of_few>{})
        : run(count, documents, std::integral_constant<int, width_of_many>{});
  });
}

struct GroupGrid {
  unsigned blocks;
  WarpGroups groups;
  TimeTiles tiles;
};

template <int taps, int width, class Kernel>
GroupGrid group_grid(Kernel kernel, const Sequences& s, int warps_of_block) {
  const WarpGroups groups = groups_of<width>(s.channels, warps_of_block);
  const int64_t resident = resident_blocks(kernel, static_cast<int>(groups.threads()));
  const TimeTiles tiles = taps > 0 ? balanced_tiles(s, resident * groups.count, ring_size<taps>)
                                   : tiles_of_size(s, tile_without_taps);
  const int64_t work = (int64_t{tiles.count} + groups.count - 1) / groups.count;
  return {static_cast<unsigned>(balanced_blocks(work, resident)), groups, tiles};
}

}  // namespace

template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, float* scales, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  const bool few = s.channels <= forward_threads * forward_width;
  const auto run = [&](auto taps, auto documents, auto width) {
    const auto kernel = forward_kernel<T, taps, documents, width>;
    const GroupGrid grid = group_grid<taps, width>(kernel, s, forward_warps<taps>);
    kernel<<<grid.blocks, grid.groups.threads(), 0, stream>>>(
        in, grid.groups, grid.tiles, y, scales);
    require_started();
  };
  dispatch_width<forward_width, forward_width_of_many>(s, in.taps, few, run);
}

template <class T>
void norm_canon_backward(const NormCanon<T>& in,
                         const NormCanonBackward<T>& pass,
                         const AllocateRows& sums,
                         cudaStream_t stream) {
  const Sequences& s = in.sequences;
  const bool few = in.taps > 0 && s.channels <= backward_threads * backward_width;
  const auto run = [&](auto taps, auto documents, auto width) {
    const auto kernel = backward_kernel<T, taps, documents, width>;
    const GroupGrid grid = group_grid<taps, width>(kernel, s, backward_warps);
    float* partial = sums(grid.blocks);
    if (s.batch * s.length == 0) return;
    kernel<<<grid.blocks, grid.groups.threads(), 0, stream>>>(
        in, pass, grid.groups, grid.tiles, partial);
    require_started();
  };
  dispatch_width<backward_width, backward_width_of_many>(s, in.taps, few, run);
}

template void norm_canon_forward(const NormCanon<float>&, float*, float*, cudaStream_t);
template void norm_canon_forward(const NormCanon<bfloat16>&, bfloat16*, float*, cudaStream_t);
template void norm_canon_backward(const NormCanon<float>&,
                                  const NormCanonBackward<float>&,
                                  const AllocateRows&,
                                  cudaStream_t);
template void norm_canon_backward(const NormCanon<bfloat16>&,
                                  const NormCanonBackward<bfloat16>&,
                                  const AllocateRows&,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
