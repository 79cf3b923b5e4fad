#include "backends/libtorch/ops/norm_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/stretch.cuh"

// A group of warps holds the channels of a few neighbouring tokens in registers: every input is
// read once, sums over channels are shuffles, and what the convolution reaches to is in the same
// thread.
namespace forge::ops::cuda {
namespace {

// Channels of a lane. With a convolution the way back keeps more for each; with many channels a
// block would have more threads than there are registers for.
constexpr int forward_width = 8, forward_width_of_many = 16;
constexpr int backward_width = 4, backward_width_of_many = 8;
constexpr int forward_threads = 256, backward_threads = 512;  // of a block, at most
static_assert(most_norm_channels == forward_threads * forward_width_of_many &&
              most_norm_channels == backward_threads * backward_width_of_many);
constexpr int most_warps = backward_threads / warp_size;

// Tokens whose channels a group adds up at a time, and those of a stretch where there is no
// convolution, and with that nothing to read twice.
constexpr int forward_batch = 4, backward_batch = 2, short_stretch = 4;

/// Groups of a block, each with the warps that its token's channels need.
struct Groups {
  int warps, count;

  unsigned threads() const { return static_cast<unsigned>(warps * count * warp_size); }
};

// Small groups share a block with others, up to so many warps.
template <int taps>
constexpr int forward_warps = taps == 0 ? 8 : 2;
constexpr int backward_warps = 8;

template <int width>
Groups groups_of(int64_t channels, int warps_of_block) {
  const int warps = static_cast<int>((channels + warp_size * width - 1) / (warp_size * width));
  return {warps, std::max(1, warps_of_block / warps)};
}

/// Which group of its block a thread belongs to, and its first channel.
struct Lane {
  int group, channel;
  bool active;  ///< the channel is one
};

template <int width>
__device__ __forceinline__ Lane lane_of(const Groups& groups, int64_t channels) {
  const int threads = groups.warps * warp_size, group = threadIdx.x / threads;
  const int channel = (threadIdx.x - group * threads) * width;
  return {group, channel, channel < channels};
}

/// Waits for the warps of the thread's group.
__device__ __forceinline__ void wait_for_group(const Groups& groups, const Lane& lane) {
  // Barrier 0 is that of the whole block.
  asm volatile("bar.sync %0, %1;" ::"r"(lane.group + 1), "r"(groups.warps * warp_size) : "memory");
}

/// Sums over the channels of several tokens, in all of the group's threads. Warps exchange theirs
/// in `memory`; rounds take turns with its halves, so that one barrier a round is enough.
template <int count>
__device__ __forceinline__ void sum_over_group(float (&sums)[count],
                                               const Groups& groups,
                                               const Lane& lane,
                                               float (&memory)[2][most_warps][count],
                                               int round) {
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = warp_sum(sums[i]);
  if (groups.warps == 1) return;
  float(&own)[most_warps][count] = memory[round & 1];
  if (threadIdx.x % warp_size == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i) own[threadIdx.x / warp_size][i] = sums[i];
  }
  wait_for_group(groups, lane);
  fill(sums, 0);
  for (int warp = 0; warp < groups.warps; ++warp) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += own[lane.group * groups.warps + warp][i];
  }
}

/// Calls run(stretch, active) for each of a group's stretches. All threads come along, active or
/// not.
template <class Run>
__device__ __forceinline__ void for_each_stretch(const Sequences& s,
                                                 const Stretches& stretches,
                                                 const Groups& groups,
                                                 const Lane& lane,
                                                 const Run& run) {
  for (unsigned first = blockIdx.x * groups.count; first < stretches.count;
       first += gridDim.x * groups.count) {
    const unsigned index = first + lane.group;
    // A group without a stretch goes along the last one and writes nothing.
    run(stretches.at(s, min(index, stretches.count - 1)), lane.active && index < stretches.count);
  }
}

/// What the normalised values of a lane's channels are multiplied by: the norm's weights, and the
/// taps where there are any, current token first.
template <int taps, int width>
struct LaneWeights {
  static constexpr int count = taps > 0 ? taps : 1;
  float norm[width], tap[count][width];

  template <class T>
  __device__ __forceinline__ void load_from(const NormCanon<T>& in, const Lane& lane) {
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

template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(forward_threads)
    forward_kernel(NormCanon<T> in, Groups groups, Stretches stretches, T* y, float* scales) {
  constexpr int reach = taps > 0 ? taps - 1 : 0, kept = LaneWeights<taps, width>::count;
  constexpr int batch = forward_batch;
  __shared__ float memory[2][most_warps][batch];
  const Sequences& s = in.sequences;
  const Lane lane = lane_of<width>(groups, s.channels);
  float weights[kept][width];
  {
    LaneWeights<taps, width> stored;
    stored.load_from(in, lane);
    stored.products(weights);
  }
  const float inverse_channels = 1 / static_cast<float>(s.channels);
  int round = 0;
  for_each_stretch(s, stretches, groups, lane, [&](const Stretch& stretch, bool active) {
    const int64_t place = stretch.first_token * in.stride + lane.channel;
    // The batch before the stretch is for what the taps reach to.
    const int first = stretch.begin - (reach > 0 ? batch : 0);
    Incoming<T, batch, width> next;
    float normal[batch][width];
    DocumentRing<batch, documents> docs;
    next.begin(in.x + place, in.stride, first, active ? stretch.end : 0);
    docs.begin(s, stretch, first);
    for (int t = first; t < stretch.end; t += batch) {
      float x[batch][width], scale[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        next.take(i, x[i]);
        scale[i] = 0;
#pragma unroll
        for (int j = 0; j < width; ++j) scale[i] += x[i][j] * x[i][j];
      }
      sum_over_group(scale, groups, lane, memory, round++);
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        scale[i] = rsqrtf(scale[i] * inverse_channels + in.eps);
#pragma unroll
        for (int j = 0; j < width; ++j) normal[i][j] = x[i][j];
        normalise<T>(normal[i], scale[i], in.round_first);
        docs.take(s, stretch, t + i, i);
        if (!active || t < stretch.begin || t + i >= stretch.end) continue;
        float out[width];
        convolve<kept>(normal, docs, weights, i, out);
        store(y + place + (t + i) * in.stride, out);
        if (lane.channel == 0) scales[stretch.first_token + t + i] = scale[i];
      }
    }
  });
}

/// The gradients of a lane's weights from `sums`, where a row of sums for every tap is the sum of
/// the normalised values times the gradients of what read them.
template <int taps, int width, int kept>
__device__ __forceinline__ void write_sums(const float (&sums)[kept][width],
                                           const LaneWeights<taps, width>& weights,
                                           const Lane& lane,
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

/// A block's sums are a row of `partial`.
template <class T, int taps, bool documents, int width>
__global__ void __launch_bounds__(backward_threads) backward_kernel(NormCanon<T> in,
                                                                    Groups groups,
                                                                    Stretches stretches,
                                                                    const float* scales,
                                                                    const T* grad_y,
                                                                    const T* grad_residual,
                                                                    T* y,
                                                                    T* grad_x,
                                                                    float* partial) {
  constexpr int reach = taps > 0 ? taps - 1 : 0, kept = LaneWeights<taps, width>::count;
  constexpr int slot_count = slots<taps>, batch = backward_batch;
  __shared__ float memory[2][most_warps][batch];
  const Sequences& s = in.sequences;
  const Lane lane = lane_of<width>(groups, s.channels);
  float weights[kept][width], sums[kept][width];
  {
    LaneWeights<taps, width> stored;
    stored.load_from(in, lane);
    stored.products(weights);
  }
#pragma unroll
  for (int i = 0; i < kept; ++i) fill(sums[i], 0);
  const float inverse_channels = 1 / static_cast<float>(s.channels);
  int round = 0;
  for_each_stretch(s, stretches, groups, lane, [&](const Stretch& stretch, bool active) {
    const int64_t place = stretch.first_token * in.stride + lane.channel;
    const float* of_tokens = scales + stretch.first_token;
    const int end = active ? stretch.end : 0;
    // Tokens before the stretch are for y, gradients of those behind it for grad_x: slot i of the
    // gradients is token t + i + reach.
    Incoming<T, batch, width> next, passed, upstream;
    float normal[slot_count][width], grad[slot_count][width];
    DocumentRing<slot_count, documents> docs, docs_of_grad;
    next.begin(in.x + place, in.stride, stretch.begin, end);
    passed.begin(grad_residual + place, in.stride, stretch.begin, grad_residual ? end : 0);
    upstream.begin(grad_y + place, in.stride, stretch.begin + reach, active ? stretch.length : 0);
#pragma unroll
    for (int back = 1; back <= reach; ++back) {
      const int t = stretch.begin - back, ahead = stretch.begin + reach - back;
      float(&before)[width] = normal[slot_before<slot_count>(0, back)];
      float(&behind)[width] = grad[slot_before<slot_count>(0, back)];
      fill(before, 0);
      fill(behind, 0);
      if (active && t >= 0) {
        load_input(in.x + place + t * in.stride, before);
        normalise<T>(before, __ldg(of_tokens + t), in.round_first);
      }
      if (active && ahead < stretch.length) load_input(grad_y + place + ahead * in.stride, behind);
    }
    docs.begin(s, stretch, stretch.begin);
    docs_of_grad.begin(s, stretch, stretch.begin + reach);
    for (int begin = stretch.begin; begin < stretch.end; begin += slot_count) {
#pragma unroll
      for (int part = 0; part < slot_count; part += batch) {
        const int t = begin + part;
        // Of each token, the gradient of its normalised values, and its product with them.
        float x[batch][width], of_normal[batch][width], products[batch], scale[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const int slot = part + i;
          scale[i] = t + i < stretch.end ? __ldg(of_tokens + t + i) : 0.0f;
          next.take(i, x[i]);
          upstream.take(i, grad[slot]);
          docs.take(s, stretch, t + i, slot);
          docs_of_grad.take(s, stretch, t + i + reach, slot);
#pragma unroll
          for (int j = 0; j < width; ++j) normal[slot][j] = x[i][j];
          normalise<T>(normal[slot], scale[i], in.round_first);
          gather<kept>(grad, docs_of_grad, weights, slot, of_normal[i]);
          add_tap_products<kept>(grad, docs_of_grad, normal[slot], slot, sums);
          products[i] = 0;
#pragma unroll
          for (int j = 0; j < width; ++j) products[i] += x[i][j] * of_normal[i][j];
          if (!y || !active || t + i >= stretch.end) continue;
          float out[width];
          convolve<kept>(normal, docs, weights, slot, out);
          store(y + place + (t + i) * in.stride, out);
        }
        sum_over_group(products, groups, lane, memory, round++);
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const float factor = products[i] * inverse_channels * scale[i] * scale[i] * scale[i];
          float out[width];
          passed.take(i, out);
          if (!active || t + i >= stretch.end) continue;
#pragma unroll
          for (int j = 0; j < width; ++j) out[j] += scale[i] * of_normal[i][j] - factor * x[i][j];
          store(grad_x + place + (t + i) * in.stride, out);
        }
      }
    }
  });
  LaneWeights<taps, width> stored;
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

/// Calls run(taps, documents, width), all constants.
template <class Run>
void with_forward_kind(const Sequences& s, int taps, const Run& run) {
  with_taps(taps, s.doc_ids, [&](auto count, auto documents) {
    if (s.channels <= forward_threads * forward_width) {
      run(count, documents, std::integral_constant<int, forward_width>{});
    } else {
      run(count, documents, std::integral_constant<int, forward_width_of_many>{});
    }
  });
}

template <class Run>
void with_backward_kind(const Sequences& s, int taps, const Run& run) {
  with_taps(taps, s.doc_ids, [&](auto count, auto documents) {
    if (decltype(count)::value > 0 && s.channels <= backward_threads * backward_width) {
      run(count, documents, std::integral_constant<int, backward_width>{});
    } else {
      run(count, documents, std::integral_constant<int, backward_width_of_many>{});
    }
  });
}

/// The blocks of a kernel, their groups and stretches.
struct Grid {
  unsigned blocks;
  Groups groups;
  Stretches stretches;
};

template <int taps, int width, class Kernel>
Grid grid_of(Kernel kernel, const Sequences& s, int warps_of_block) {
  const Groups groups = groups_of<width>(s.channels, warps_of_block);
  const int64_t at_once = blocks_at_once(kernel, static_cast<int>(groups.threads()));
  const Stretches stretches = taps > 0 ? even_stretches(s, at_once * groups.count, slots<taps>)
                                       : stretches_of(s, short_stretch);
  const int64_t shares = (int64_t{stretches.count} + groups.count - 1) / groups.count;
  return {static_cast<unsigned>(blocks_of_rounds(shares, at_once)), groups, stretches};
}

template <class T, int taps, bool documents, int width>
Grid backward_grid(const Sequences& s) {
  return grid_of<taps, width>(backward_kernel<T, taps, documents, width>, s, backward_warps);
}

}  // namespace

template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, float* scales, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_forward_kind(s, in.taps, [&](auto taps, auto documents, auto width) {
    constexpr int count = decltype(taps)::value, channels = decltype(width)::value;
    const auto kernel = forward_kernel<T, count, decltype(documents)::value, channels>;
    const Grid grid = grid_of<count, channels>(kernel, s, forward_warps<count>);
    kernel<<<grid.blocks, grid.groups.threads(), 0, stream>>>(
        in, grid.groups, grid.stretches, y, scales);
  });
}

template <class T>
int64_t norm_canon_partial_rows(const NormCanon<T>& in) {
  const Sequences& s = in.sequences;
  int64_t rows = 0;
  with_backward_kind(s, in.taps, [&](auto taps, auto documents, auto width) {
    rows =
        backward_grid<T, decltype(taps)::value, decltype(documents)::value, decltype(width)::value>(
            s)
            .blocks;
  });
  return rows;
}

template <class T>
void norm_canon_backward(const NormCanon<T>& in,
                         const float* scales,
                         const T* grad_y,
                         const T* grad_residual,
                         T* y,
                         T* grad_x,
                         float* partial,
                         cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_backward_kind(s, in.taps, [&](auto taps, auto documents, auto width) {
    constexpr int count = decltype(taps)::value, channels = decltype(width)::value;
    constexpr bool several = decltype(documents)::value;
    const Grid grid = backward_grid<T, count, several, channels>(s);
    backward_kernel<T, count, several, channels><<<grid.blocks, grid.groups.threads(), 0, stream>>>(
        in, grid.groups, grid.stretches, scales, grad_y, grad_residual, y, grad_x, partial);
  });
}

template void norm_canon_forward(const NormCanon<float>&, float*, float*, cudaStream_t);
template void norm_canon_forward(const NormCanon<bfloat16>&, bfloat16*, float*, cudaStream_t);
template int64_t norm_canon_partial_rows(const NormCanon<float>&);
template int64_t norm_canon_partial_rows(const NormCanon<bfloat16>&);
template void norm_canon_backward(const NormCanon<float>&,
                                  const float*,
                                  const float*,
                                  const float*,
                                  float*,
                                  float*,
                                  float*,
                                  cudaStream_t);
template void norm_canon_backward(const NormCanon<bfloat16>&,
                                  const float*,
                                  const bfloat16*,
                                  const bfloat16*,
                                  bfloat16*,
                                  bfloat16*,
                                  float*,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
