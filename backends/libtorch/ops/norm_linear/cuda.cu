#include "backends/libtorch/ops/norm_linear/cuda.h"

#include <type_traits>

#include "backends/libtorch/ops/canon_conv/march.cuh"
#include "backends/libtorch/ops/common/cuda.cuh"

// A group of warps holds the channels of a token in registers, eight a lane, and goes from token to
// token: every input is read once, sums over channels are shuffles, and what the convolution
// reaches back to, or its gradient ahead to, stays where it is.
namespace forge::ops::cuda {
namespace {

constexpr int width = 8;                          // channels of a lane
constexpr int warp_channels = warp_size * width;  // of a warp
constexpr int most_warps = most_norm_channels / warp_channels;

// Threads of a block, at most. In the smallest a warp is a group, and there are four of them; in
// the others a block is one group. The fewer threads, the more registers each may have.
constexpr int four_groups = 128, one_group = 256, large_group = 512;
constexpr int groups_of_block = four_groups / warp_size;

/// Tokens that a group goes through at a time. With a convolution it reads some more.
template <int taps>
constexpr int stretch_size = taps > 0 ? 16 : 4;

template <int taps>
__host__ __device__ int64_t stretch_count(const Sequences& s) {
  return s.batch * ((s.length + stretch_size<taps> - 1) / stretch_size<taps>);
}

struct NormStretch {
  int64_t first_token;  ///< of the row, in the batch
  int begin, end, length;
};

template <int taps>
__device__ __forceinline__ NormStretch norm_stretch_of(const Sequences& s, int64_t index) {
  constexpr int size = stretch_size<taps>;
  const int length = static_cast<int>(s.length), per_row = (length + size - 1) / size;
  const int begin = static_cast<int>(index % per_row) * size;
  return {index / per_row * s.length, begin, min(begin + size, length), length};
}

/// Which group of its block a thread belongs to, and its first channel.
struct Lane {
  int group, channel;
  bool active;  ///< the channel is one
};

template <bool one_warp>
__device__ __forceinline__ Lane lane_of(int64_t channels) {
  const int thread = one_warp ? threadIdx.x % warp_size : threadIdx.x;
  const int group = one_warp ? threadIdx.x / warp_size : 0;
  return {group, thread * width, thread * width < channels};
}

/// Two sums over all channels of a token, in all of the group's threads. Where the group has
/// several warps they exchange them in `memory`, and rounds take turns with its halves, so that one
/// barrier a round is enough.
template <bool one_warp>
__device__ __forceinline__ float2 token_sums(float2 x, float2 (*memory)[most_warps], int round) {
  x = {warp_sum(x.x), warp_sum(x.y)};
  if constexpr (!one_warp) {
    float2* own = memory[round & 1];
    if (threadIdx.x % warp_size == 0) own[threadIdx.x / warp_size] = x;
    __syncthreads();
    x = own[0];
    for (int warp = 1; warp < blockDim.x / warp_size; ++warp) {
      x.x += own[warp].x;
      x.y += own[warp].y;
    }
  }
  return x;
}

/// A lane's channels of a token as they are in memory, so that they can be asked for early.
template <class T>
struct Row {
  Pack<T, elements_of_access<T, width>> packs[width / elements_of_access<T, width>];

  __device__ __forceinline__ void ask(const T* p, bool wanted) {
    constexpr int step = elements_of_access<T, width>;
#pragma unroll
    for (int i = 0; i < width / step; ++i) {
      if (wanted) {
        packs[i] = read_only<T, step>(p + i * step);
      } else {
        packs[i] = {};
      }
    }
  }
  __device__ __forceinline__ void get(float (&out)[width]) const {
    constexpr int step = elements_of_access<T, width>;
#pragma unroll
    for (int j = 0; j < width; ++j) out[j] = to_float(packs[j / step].values[j % step]);
  }
};

/// The last `size` rows of a lane's channels, newest first.
template <int size>
struct Rows {
  float of[size > 0 ? size : 1][width];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < (size > 0 ? size : 1); ++i) fill(of[i], 0);
  }
  __device__ __forceinline__ void push(const float (&newest)[width]) {
#pragma unroll
    for (int i = size - 1; i > 0; --i) {
#pragma unroll
      for (int j = 0; j < width; ++j) of[i][j] = of[i - 1][j];
    }
#pragma unroll
    for (int j = 0; j < width; ++j) of[0][j] = newest[j];
  }
};

/// What a lane keeps of the weights of its channels.
template <int taps>
struct LaneWeights {
  float norm[width];
  float tap[taps > 0 ? taps : 1][width];

  template <class T>
  __device__ __forceinline__ void load_from(const NormCanon<T>& in, const Lane& lane) {
    fill(norm, 0);
#pragma unroll
    for (int i = 0; i < (taps > 0 ? taps : 1); ++i) fill(tap[i], 0);
    if (!lane.active) return;
    load_input(in.norm_weights + lane.channel, norm);
    if constexpr (taps > 0) load_taps(in.tap_weights, lane.channel, in.residual, tap);
  }
};

template <class T, int taps, bool documents, int threads>
__global__ void __launch_bounds__(threads) forward_kernel(NormCanon<T> in, T* y) {
  constexpr bool one_warp = threads == four_groups;
  constexpr int reach = taps > 0 ? taps - 1 : 0;
  __shared__ float2 memory[2][most_warps];
  const Sequences& s = in.sequences;
  const Lane lane = lane_of<one_warp>(s.channels);
  const int64_t index = int64_t{blockIdx.x} * (one_warp ? groups_of_block : 1) + lane.group;
  if (index >= stretch_count<taps>(s)) return;  // a whole group
  const NormStretch stretch = norm_stretch_of<taps>(s, index);
  LaneWeights<taps> w;
  w.load_from(in, lane);
  Rows<taps> past;
  DocumentWindow<taps, documents && (taps > 0)> docs;
  past.clear();
  docs.clear();
  int t = max(0, stretch.begin - reach);
  const T* x = in.x + (stretch.first_token + t) * in.stride + lane.channel;
  Row<T> next;
  next.ask(x, lane.active);
#pragma unroll 4
  for (; t < stretch.end; ++t) {
    float value[width], square = 0;
    next.get(value);
    x += in.stride;
    next.ask(x, lane.active && t + 1 < stretch.end);
#pragma unroll
    for (int j = 0; j < width; ++j) square += value[j] * value[j];
    square = token_sums<one_warp>({square, 0}, memory, t).x;
    const float scale = rsqrtf(square / static_cast<float>(s.channels) + in.eps);
#pragma unroll
    for (int j = 0; j < width; ++j)
      value[j] = normalised<T>(value[j], scale, in.round_first) * w.norm[j];
    if constexpr (taps > 0) {
      past.push(value);
      if constexpr (documents) docs.push(s.doc_ids[stretch.first_token + t]);
      if (t < stretch.begin) continue;
      fill(value, 0);
#pragma unroll
      for (int i = 0; i < taps; ++i) {
        if (!docs.same(0, i)) continue;
#pragma unroll
        for (int j = 0; j < width; ++j) value[j] += w.tap[i][j] * past.of[i][j];
      }
    }
    if (lane.active) store(y + (stretch.first_token + t) * in.stride + lane.channel, value);
  }
}

/// Sums over tokens of a lane's channels, for the gradients of the weights.
template <int taps>
struct LaneSums {
  float norm[width];
  float tap[taps > 0 ? taps : 1][width];

  __device__ __forceinline__ void clear() {
    fill(norm, 0);
#pragma unroll
    for (int i = 0; i < (taps > 0 ? taps : 1); ++i) fill(tap[i], 0);
  }
  /// To row [C * (1 + taps)], or added to what is there.
  __device__ __forceinline__ void write(const Lane& lane,
                                        int64_t channels,
                                        bool add,
                                        float* row) const {
    if (!lane.active) return;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      float* of_norm = row + lane.channel + j;
      *of_norm = norm[j] + (add ? *of_norm : 0.0f);
      if constexpr (taps > 0) {
#pragma unroll
        for (int i = 0; i < taps; ++i) {
          float* of_tap = row + channels + (lane.channel + j) * taps + taps - 1 - i;
          *of_tap = tap[i][j] + (add ? *of_tap : 0.0f);
        }
      }
    }
  }
};

/// A stretch of the way back: grad_x, and y once more where it is wanted; adds to the sums.
template <class T, int taps, bool documents, bool one_warp>
__device__ __forceinline__ void stretch_back(const NormCanon<T>& in,
                                             const T* grad_y,
                                             const T* grad_residual,
                                             T* y,
                                             T* grad_x,
                                             const NormStretch& stretch,
                                             const Lane& lane,
                                             const LaneWeights<taps>& w,
                                             LaneSums<taps>& sums,
                                             float2 (*memory)[most_warps],
                                             int& round) {
  constexpr int reach = taps > 0 ? taps - 1 : 0;
  const Sequences& s = in.sequences;
  const int32_t* doc_ids = documents ? s.doc_ids + stretch.first_token : nullptr;
  const auto place = [&](int t) { return (stretch.first_token + t) * in.stride + lane.channel; };
  const float inverse_channels = 1 / static_cast<float>(s.channels);
  Rows<taps> past;   // what the convolution read of token t - i
  Rows<taps> later;  // of[taps - 1 - i]: the gradient of token t + i
  past.clear();
  later.clear();
  if constexpr (taps > 0) {
    for (int t = max(0, stretch.begin - reach); t < stretch.begin; ++t) {
      Row<T> row;
      float value[width], square = 0;
      row.ask(in.x + place(t), lane.active);
      row.get(value);
#pragma unroll
      for (int j = 0; j < width; ++j) square += value[j] * value[j];
      square = token_sums<one_warp>({square, 0}, memory, round++).x;
      const float scale = rsqrtf(square * inverse_channels + in.eps);
#pragma unroll
      for (int j = 0; j < width; ++j)
        value[j] = normalised<T>(value[j], scale, in.round_first) * w.norm[j];
      past.push(value);
    }
#pragma unroll
    for (int i = 0; i < reach; ++i) {
      Row<T> row;
      float value[width];
      const int t = stretch.begin + i;
      row.ask(grad_y + place(t), lane.active && t < stretch.length);
      row.get(value);
      later.push(value);
    }
  }
  Row<T> next_x, next_grad, next_residual;
  const auto ask = [&](int t) {
    const bool wanted = lane.active && t < stretch.end;
    next_x.ask(in.x + place(t), wanted);
    next_grad.ask(grad_y + place(t + reach), wanted && t + reach < stretch.length);
    next_residual.ask(grad_residual + place(t), wanted && grad_residual);
  };
  ask(stretch.begin);
#pragma unroll 4
  for (int t = stretch.begin; t < stretch.end; ++t) {
    float x[width], g[width], passed[width];
    next_x.get(x);
    next_grad.get(g);
    next_residual.get(passed);
    ask(t + 1);
    if constexpr (taps > 0) {
      later.push(g);
      fill(g, 0);
#pragma unroll
      for (int i = 0; i < taps; ++i) {
        if (documents && t + i < stretch.length && doc_ids[t + i] != doc_ids[t]) continue;
#pragma unroll
        for (int j = 0; j < width; ++j) g[j] += w.tap[i][j] * later.of[taps - 1 - i][j];
      }
    }
    float2 partial{0, 0};
#pragma unroll
    for (int j = 0; j < width; ++j) {
      partial.x += x[j] * x[j];
      partial.y += x[j] * w.norm[j] * g[j];
    }
    partial = token_sums<one_warp>(partial, memory, round++);
    const float scale = rsqrtf(partial.x * inverse_channels + in.eps);
    const float factor = partial.y * inverse_channels * scale * scale * scale;
    float weighted[width];
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float n = normalised<T>(x[j], scale, in.round_first);
      weighted[j] = n * w.norm[j];
      sums.norm[j] += g[j] * n;
      passed[j] += scale * w.norm[j] * g[j] - factor * x[j];
    }
    if (lane.active) store(grad_x + place(t), passed);
    if constexpr (taps > 0) {
      past.push(weighted);
      fill(weighted, 0);
#pragma unroll
      for (int i = 0; i < taps; ++i) {
        if (!documents || (t + i < stretch.length && doc_ids[t + i] == doc_ids[t])) {
#pragma unroll
          for (int j = 0; j < width; ++j)
            sums.tap[i][j] += later.of[taps - 1 - i][j] * past.of[0][j];
        }
        if (!documents || (t >= i && doc_ids[t - i] == doc_ids[t])) {
#pragma unroll
          for (int j = 0; j < width; ++j) weighted[j] += w.tap[i][j] * past.of[i][j];
        }
      }
    }
    if (y && lane.active) store(y + place(t), weighted);
  }
}

/// Groups take stretch after stretch; a block's sums are a row of `partial`.
template <class T, int taps, bool documents, int threads>
__global__ void __launch_bounds__(threads) backward_kernel(
    NormCanon<T> in, const T* grad_y, const T* grad_residual, T* y, T* grad_x, float* partial) {
  constexpr bool one_warp = threads == four_groups;
  __shared__ float2 memory[2][most_warps];
  const Sequences& s = in.sequences;
  const Lane lane = lane_of<one_warp>(s.channels);
  constexpr int groups = one_warp ? groups_of_block : 1;
  LaneWeights<taps> w;
  LaneSums<taps> sums;
  w.load_from(in, lane);
  sums.clear();
  int round = 0;
  for (int64_t index = int64_t{blockIdx.x} * groups + lane.group; index < stretch_count<taps>(s);
       index += int64_t{gridDim.x} * groups) {
    const NormStretch stretch = norm_stretch_of<taps>(s, index);
    stretch_back<T, taps, documents, one_warp>(
        in, grad_y, grad_residual, y, grad_x, stretch, lane, w, sums, memory, round);
  }
  // One group after the other, so that the order of the sum is always the same.
  float* row = partial + blockIdx.x * s.channels * (1 + taps);
  for (int group = 0; group < groups; ++group) {
    if (lane.group == group) sums.write(lane, s.channels, group > 0, row);
    if (groups > 1) __syncthreads();
  }
}

/// Calls run(taps, documents, threads), all constants.
template <class Run>
void with_kind(const Sequences& s, int taps, const Run& run) {
  with_taps(taps, s.doc_ids, [&](auto count, auto documents) {
    if (s.channels <= warp_channels) {
      run(count, documents, std::integral_constant<int, four_groups>{});
    } else if (s.channels <= one_group * width) {
      run(count, documents, std::integral_constant<int, one_group>{});
    } else {
      run(count, documents, std::integral_constant<int, large_group>{});
    }
  });
}

/// Threads that a block of at most so many has, and blocks for every stretch to have a group.
unsigned block_threads(const Sequences& s, int most) {
  if (most == four_groups) return four_groups;
  return static_cast<unsigned>((s.channels + warp_channels - 1) / warp_channels * warp_size);
}

int64_t block_count(int64_t stretches, int most) {
  return most == four_groups ? (stretches + groups_of_block - 1) / groups_of_block : stretches;
}

}  // namespace

template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_kind(s, in.taps, [&](auto taps, auto documents, auto threads) {
    constexpr int count = decltype(taps)::value, most = decltype(threads)::value;
    const auto blocks = static_cast<unsigned>(block_count(stretch_count<count>(s), most));
    forward_kernel<T, count, decltype(documents)::value, most>
        <<<blocks, block_threads(s, most), 0, stream>>>(in, y);
  });
}

template <class T>
int64_t norm_canon_partial_rows(const NormCanon<T>& in, int multiprocessors) {
  const Sequences& s = in.sequences;
  int64_t rows = 0;
  with_kind(s, in.taps, [&](auto taps, auto documents, auto threads) {
    constexpr int count = decltype(taps)::value, most = decltype(threads)::value;
    int resident = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident,
        backward_kernel<T, count, decltype(documents)::value, most>,
        static_cast<int>(block_threads(s, most)),
        0);
    const int64_t wanted = block_count(stretch_count<count>(s), most);
    const int64_t at_once = int64_t{multiprocessors} * (resident > 1 ? resident : 1);
    rows = wanted < at_once ? wanted : at_once;
  });
  return rows;
}

template <class T>
void norm_canon_backward(const NormCanon<T>& in,
                         const T* grad_y,
                         const T* grad_residual,
                         T* y,
                         T* grad_x,
                         float* partial,
                         int64_t partial_rows,
                         cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  with_kind(s, in.taps, [&](auto taps, auto documents, auto threads) {
    constexpr int most = decltype(threads)::value;
    backward_kernel<T, decltype(taps)::value, decltype(documents)::value, most>
        <<<static_cast<unsigned>(partial_rows), block_threads(s, most), 0, stream>>>(
            in, grad_y, grad_residual, y, grad_x, partial);
  });
}

template void norm_canon_forward(const NormCanon<float>&, float*, cudaStream_t);
template void norm_canon_forward(const NormCanon<bfloat16>&, bfloat16*, cudaStream_t);
template int64_t norm_canon_partial_rows(const NormCanon<float>&, int);
template int64_t norm_canon_partial_rows(const NormCanon<bfloat16>&, int);
template void norm_canon_backward(const NormCanon<float>&,
                                  const float*,
                                  const float*,
                                  float*,
                                  float*,
                                  float*,
                                  int64_t,
                                  cudaStream_t);
template void norm_canon_backward(const NormCanon<bfloat16>&,
                                  const bfloat16*,
                                  const bfloat16*,
                                  bfloat16*,
                                  bfloat16*,
                                  float*,
                                  int64_t,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
