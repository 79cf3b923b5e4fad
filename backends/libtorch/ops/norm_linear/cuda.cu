#include "backends/libtorch/ops/norm_linear/cuda.h"

#include <type_traits>

#include "backends/libtorch/ops/canon_conv/march.cuh"
#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

// Tokens of one row that a block takes at a time, at most. It reads them twice, so they are brought
// to shared memory where there is room.
constexpr int most_tile_tokens = 32;
__host__ __device__ constexpr int tile_tokens_of(int64_t channels) {
  return channels <= 512 ? 32 : 16;
}

constexpr int most_threads = 256;  // of a block: each needs many registers
constexpr int group = 2;           // tokens whose sums a warp takes at a time
constexpr int row_width = 8;       // elements of a lane where a warp reads a row
constexpr int pack_width = 4;      // channels of a thread that goes from token to token

struct Tile {
  int64_t first;  ///< token of the batch that the row begins with
  int begin, end, length;
};

__device__ __forceinline__ Tile tile_of(const Sequences& s, int64_t index) {
  const int length = static_cast<int>(s.length);
  const int tokens = tile_tokens_of(s.channels), per_row = (length + tokens - 1) / tokens;
  const int begin = static_cast<int>(index % per_row) * tokens;
  return {index / per_row * s.length, begin, min(begin + tokens, length), length};
}

__host__ __device__ inline int64_t tile_count(const Sequences& s) {
  const int64_t tokens = tile_tokens_of(s.channels);
  return s.batch * ((s.length + tokens - 1) / tokens);
}

/// Begins to copy the tokens begin … end - 1 of a row to shared memory, where they lie side by
/// side. Returns where token 0 would lie there.
template <class T>
__device__ __forceinline__ const T* stage_rows(
    const T* x, int begin, int end, int64_t channels, int64_t stride, float* memory) {
  constexpr int chunk = 16 / sizeof(T);
  T* to = reinterpret_cast<T*>(memory);
  const T* from = x + begin * stride;
  const int gap = static_cast<int>(stride - channels);
  const int count = static_cast<int>((end - begin) * channels);
  for (int i = static_cast<int>(threadIdx.x) * chunk; i < count; i += blockDim.x * chunk) {
    const int gaps = gap > 0 ? i / static_cast<int>(channels) * gap : 0;
    __pipeline_memcpy_async(to + i, from + i + gaps, 16);
  }
  return to - begin * channels;
}

/// 1 / sqrt(mean(x^2) + eps) of a row, by a warp.
template <class T>
__device__ __forceinline__ float scale_of(const T* row, int64_t channels, float eps, int lane) {
  float sum = 0;
  for (int64_t c = lane * row_width; c < channels; c += warp_size * row_width) {
    float x[row_width];
    load(row + c, x);
#pragma unroll
    for (int j = 0; j < row_width; ++j) sum += x[j] * x[j];
  }
  return rsqrtf(warp_sum(sum) / static_cast<float>(channels) + eps);
}

/// RMSNorm alone: a warp a token.
template <class T>
__global__ void norm_kernel(NormCanon<T> in, T* y) {
  const Sequences& s = in.sequences;
  const int lane = threadIdx.x % warp_size;
  const int64_t token = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / warp_size;
  if (token >= s.batch * s.length) return;
  const T* row = in.x + token * in.stride;
  const float scale = scale_of(row, s.channels, in.eps, lane);
  for (int64_t c = lane * row_width; c < s.channels; c += warp_size * row_width) {
    float x[row_width], w[row_width];
    load_input(row + c, x);
    load_input(in.norm_weights + c, w);
#pragma unroll
    for (int j = 0; j < row_width; ++j) x[j] = normalised<T>(x[j], scale, in.round_first) * w[j];
    store(y + token * in.stride + c, x);
  }
}

/// The part of a tile's tokens that a thread goes through, and its channels.
struct Walk {
  int64_t channel;  ///< first of pack_width; -1: none
  int part;
  int begin, end;  ///< tokens of the row
};

/// Threads as lanes of packs, `parts` times side by side, each time with a part of the tile.
__device__ __forceinline__ Walk walk_of(const Tile& tile, int64_t packs, int parts, int64_t lane) {
  if (lane >= packs * parts) return {-1, 0, 0, 0};
  const int part = static_cast<int>(lane / packs);
  const int each = (tile_tokens_of(packs * pack_width) + parts - 1) / parts;
  const int begin = min(tile.begin + part * each, tile.end);
  return {lane % packs * pack_width, part, begin, min(begin + each, tile.end)};
}

template <class T, int taps, bool documents>
__global__ void norm_canon_kernel(NormCanon<T> in, T* y, int parts, bool staged) {
  constexpr int reach = taps - 1;
  extern __shared__ float memory[];
  __shared__ float scales[most_tile_tokens + reach];  // of tokens tile.begin - reach …
  const Sequences& s = in.sequences;
  const Tile tile = tile_of(s, blockIdx.x);
  const T* x = in.x + tile.first * s.channels;
  const int32_t* doc_ids = documents ? s.doc_ids + tile.first : nullptr;
  if (staged) {
    x = stage_rows(x, max(0, tile.begin - reach), tile.end, s.channels, s.channels, memory);
    wait_for_staged();
  }
  const int warps = blockDim.x / warp_size, warp = threadIdx.x / warp_size;
  for (int t = tile.begin - reach + warp; t < tile.end; t += warps) {
    if (t < 0) continue;
    const float scale = scale_of(x + t * s.channels, s.channels, in.eps, threadIdx.x % warp_size);
    if (threadIdx.x % warp_size == 0) scales[t - tile.begin + reach] = scale;
  }
  __syncthreads();
  const int64_t packs = s.channels / pack_width;
  for (int64_t pack = threadIdx.x; pack < packs * parts; pack += blockDim.x) {
    const Walk walk = walk_of(tile, packs, parts, pack);
    float w[pack_width], tap[taps][pack_width], past[taps][pack_width];
    int32_t docs[taps];
    load_input(in.norm_weights + walk.channel, w);
    load_taps(in.tap_weights, walk.channel, in.residual, tap);
#pragma unroll
    for (int i = 0; i < taps; ++i) {
      fill(past[i], 0);
      docs[i] = -1;
    }
#pragma unroll 4
    for (int t = max(0, walk.begin - reach); t < walk.end; ++t) {
#pragma unroll
      for (int i = taps - 1; i > 0; --i) {
        docs[i] = docs[i - 1];
#pragma unroll
        for (int j = 0; j < pack_width; ++j) past[i][j] = past[i - 1][j];
      }
      float value[pack_width];
      load(x + t * s.channels + walk.channel, value);
      const float scale = scales[t - tile.begin + reach];
#pragma unroll
      for (int j = 0; j < pack_width; ++j) {
        past[0][j] = normalised<T>(value[j], scale, in.round_first) * w[j];
      }
      if constexpr (documents) docs[0] = doc_ids[t];
      if (t < walk.begin) continue;
      fill(value, 0);
#pragma unroll
      for (int i = 0; i < taps; ++i) {
        if (documents && docs[i] != docs[0]) continue;
#pragma unroll
        for (int j = 0; j < pack_width; ++j) value[j] += tap[i][j] * past[i][j];
      }
      store(y + (tile.first + t) * s.channels + walk.channel, value);
    }
  }
}

/// The gradients of the normalised and weighted tokens first …: what their convolution's readers
/// hand down. `grad` is the row's grad_y, `stride` elements from token to token.
template <int taps, bool documents, class T>
__device__ __forceinline__ void gradients_of_normalised(const NormCanon<T>& in,
                                                        const T* grad,
                                                        int64_t stride,
                                                        const int32_t* doc_ids,
                                                        const Tile& tile,
                                                        int first,
                                                        int64_t channel,
                                                        float (&out)[group][row_width]) {
  if constexpr (taps == 0) {
#pragma unroll
    for (int i = 0; i < group; ++i) {
      fill(out[i], 0);
      if (first + i < tile.end) load(grad + (first + i) * stride + channel, out[i]);
    }
  } else {
    float tap[taps][row_width];
    load_taps(in.tap_weights, channel, in.residual, tap);
#pragma unroll
    for (int i = 0; i < group; ++i) fill(out[i], 0);
#pragma unroll
    for (int later = 0; later < group + taps - 1; ++later) {
      const int t = first + later;
      if (t >= tile.length) continue;
      float g[row_width];
      load(grad + t * stride + channel, g);
#pragma unroll
      for (int i = 0; i < group; ++i) {
        const int distance = later - i;
        if (distance < 0 || distance >= taps) continue;
        if (documents && doc_ids[t] != doc_ids[first + i]) continue;
#pragma unroll
        for (int j = 0; j < row_width; ++j) out[i][j] += tap[distance][j] * g[j];
      }
    }
  }
}

/// Blocks take tile after tile. In each a warp a token finds the token's scale and the projection
/// of the gradient on the token; then threads go through the tile with their channels, write grad_x
/// and add to the block's sums in shared memory [parts][C * (1 + taps)].
template <class T, int taps, bool documents>
__global__ void __launch_bounds__(most_threads, 2) backward_kernel(NormCanon<T> in,
                                                                   const T* grad_y,
                                                                   const T* grad_residual,
                                                                   T* y,
                                                                   T* grad_x,
                                                                   float* partial,
                                                                   int parts,
                                                                   bool staged) {
  constexpr int reach = taps > 0 ? taps - 1 : 0;
  extern __shared__ float sums[];
  __shared__ float scales[reach + most_tile_tokens];  // of tokens tile.begin - reach …
  __shared__ float factors[most_tile_tokens];
  const Sequences& s = in.sequences;
  const int64_t columns = s.channels * (1 + taps), packs = s.channels / pack_width;
  for (int64_t i = threadIdx.x; i < parts * columns; i += blockDim.x) sums[i] = 0;
  float* staged_x = sums + parts * columns;
  float* staged_grad =
      staged_x + (reach + tile_tokens_of(s.channels)) * s.channels * sizeof(T) / sizeof(float);
  const int warps = blockDim.x / warp_size, warp = threadIdx.x / warp_size;
  const int lane = threadIdx.x % warp_size;
  for (int64_t index = blockIdx.x; index < tile_count(s); index += gridDim.x) {
    const Tile tile = tile_of(s, index);
    const T* x = in.x + tile.first * in.stride;
    const T* grad = grad_y + tile.first * in.stride;
    const int64_t stride = staged ? s.channels : in.stride;  // of x and grad
    const int32_t* doc_ids = documents ? s.doc_ids + tile.first : nullptr;
    __syncthreads();  // nobody still reads what is there of the last tile
    if (staged) {
      const int end = min(tile.end + reach, tile.length);
      x = stage_rows(x, max(0, tile.begin - reach), tile.end, s.channels, in.stride, staged_x);
      grad = stage_rows(grad, tile.begin, end, s.channels, in.stride, staged_grad);
      wait_for_staged();
    }
    for (int t = tile.begin - 1 - warp; t >= max(0, tile.begin - reach); t -= warps) {
      const float scale = scale_of(x + t * stride, s.channels, in.eps, lane);
      if (lane == 0) scales[reach + t - tile.begin] = scale;
    }
    for (int first = tile.begin + warp * group; first < tile.end; first += warps * group) {
      float squares[group], products[group];
      fill(squares, 0);
      fill(products, 0);
      for (int64_t c = lane * row_width; c < s.channels; c += warp_size * row_width) {
        float w[row_width], value[row_width], g[group][row_width];
        load_input(in.norm_weights + c, w);
        gradients_of_normalised<taps, documents>(in, grad, stride, doc_ids, tile, first, c, g);
#pragma unroll
        for (int i = 0; i < group; ++i) {
          if (first + i >= tile.end) continue;
          load(x + (first + i) * stride + c, value);
#pragma unroll
          for (int j = 0; j < row_width; ++j) {
            squares[i] += value[j] * value[j];
            products[i] += value[j] * w[j] * g[i][j];
          }
        }
      }
#pragma unroll
      for (int i = 0; i < group; ++i) {
        const float mean = warp_sum(squares[i]) / static_cast<float>(s.channels);
        const float product = warp_sum(products[i]) / static_cast<float>(s.channels);
        if (lane > 0 || first + i >= tile.end) continue;
        const float scale = rsqrtf(mean + in.eps);
        scales[reach + first + i - tile.begin] = scale;
        factors[first + i - tile.begin] = product * scale * scale * scale;
      }
    }
    __syncthreads();
    for (int64_t pack = threadIdx.x; pack < packs * parts; pack += blockDim.x) {
      const Walk walk = walk_of(tile, packs, parts, pack);
      if (walk.begin >= walk.end) continue;
      constexpr int window = taps > 0 ? taps : 1;
      float w[pack_width], tap[window][pack_width];
      float past[window][pack_width], later[window][pack_width];
      float norm_sum[pack_width], tap_sum[window][pack_width];
      load_input(in.norm_weights + walk.channel, w);
      if constexpr (taps > 0) load_taps(in.tap_weights, walk.channel, in.residual, tap);
      fill(norm_sum, 0);
      // later[i] is the gradient of token t + i, past[i] what the convolution read of token t - i;
      // the walk goes forward, so both begin one token before it.
#pragma unroll
      for (int i = 0; i < window; ++i) {
        fill(tap_sum[i], 0);
        fill(later[i], 0);
        fill(past[i], 0);
        if constexpr (taps > 0) {
          if (i > 0 && walk.begin + i - 1 < tile.length) {
            load(grad + (walk.begin + i - 1) * stride + walk.channel, later[i]);
          }
          const int t = walk.begin - 1 - i;
          if (i < reach && t >= 0) {
            load(x + t * stride + walk.channel, past[i]);
            const float scale = scales[reach + t - tile.begin];
#pragma unroll
            for (int j = 0; j < pack_width; ++j) {
              past[i][j] = w[j] * normalised<T>(past[i][j], scale, in.round_first);
            }
          }
        }
      }
      const int64_t place = (tile.first + walk.begin) * in.stride + walk.channel;
      const T* residuals = grad_residual ? grad_residual + place : nullptr;
      T* outputs = y ? y + place : nullptr;
      T* gradients = grad_x + place;
#pragma unroll 2
      for (int t = walk.begin; t < walk.end; ++t) {
        float value[pack_width], g[pack_width], n[pack_width], passed[pack_width];
        float output[pack_width];
        fill(passed, 0);
        if (residuals) {
          load_input(residuals, passed);
          residuals += in.stride;
        }
        load(x + t * stride + walk.channel, value);
        const float scale = scales[reach + t - tile.begin], factor = factors[t - tile.begin];
        if constexpr (taps == 0) {
          load(grad + t * stride + walk.channel, g);
        } else {
#pragma unroll
          for (int i = 0; i < taps - 1; ++i) {
#pragma unroll
            for (int j = 0; j < pack_width; ++j) {
              later[i][j] = later[i + 1][j];
              past[taps - 1 - i][j] = past[taps - 2 - i][j];
            }
          }
          fill(later[taps - 1], 0);
          if (t + taps - 1 < tile.length) {
            load(grad + (t + taps - 1) * stride + walk.channel, later[taps - 1]);
          }
          fill(g, 0);
          fill(output, 0);
        }
#pragma unroll
        for (int j = 0; j < pack_width; ++j) {
          n[j] = normalised<T>(value[j], scale, in.round_first);
          past[0][j] = n[j] * w[j];
          if constexpr (taps == 0) output[j] = past[0][j];
        }
        if constexpr (taps > 0) {
#pragma unroll
          for (int i = 0; i < taps; ++i) {
            if (!documents || (t + i < tile.length && doc_ids[t + i] == doc_ids[t])) {
#pragma unroll
              for (int j = 0; j < pack_width; ++j) {
                g[j] += tap[i][j] * later[i][j];
                tap_sum[i][j] += later[i][j] * past[0][j];
              }
            }
            if (!documents || (t - i >= 0 && doc_ids[t - i] == doc_ids[t])) {
#pragma unroll
              for (int j = 0; j < pack_width; ++j) output[j] += tap[i][j] * past[i][j];
            }
          }
        }
#pragma unroll
        for (int j = 0; j < pack_width; ++j) {
          norm_sum[j] += g[j] * n[j];
          value[j] = scale * w[j] * g[j] - factor * value[j] + passed[j];
        }
        if (outputs) {
          store(outputs, output);
          outputs += in.stride;
        }
        store(gradients, value);
        gradients += in.stride;
      }
      float* own = sums + walk.part * columns;
#pragma unroll
      for (int j = 0; j < pack_width; ++j) {
        own[walk.channel + j] += norm_sum[j];
        if constexpr (taps > 0) {
#pragma unroll
          for (int i = 0; i < taps; ++i) {
            own[s.channels + (walk.channel + j) * taps + taps - 1 - i] += tap_sum[i][j];
          }
        }
      }
    }
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
    float sum = sums[i];
    for (int part = 1; part < parts; ++part) sum += sums[part * columns + i];
    partial[blockIdx.x * columns + i] = sum;
  }
}

// Threads of a block, about. More of them would go through fewer tokens each, and read the taps'
// reach more often.
constexpr int64_t block_lanes = 128;

/// As many lanes of packs side by side as make a block.
struct BlockShape {
  int threads, parts;
};

BlockShape block_shape(int64_t channels) {
  const int64_t packs = channels / pack_width;
  int64_t parts = packs >= block_lanes ? 1 : block_lanes / packs;
  if (parts > tile_tokens_of(channels)) parts = tile_tokens_of(channels);
  const int64_t threads = packs * parts > most_threads ? most_threads : packs * parts;
  return {static_cast<int>((threads + warp_size - 1) / warp_size * warp_size),
          static_cast<int>(parts)};
}

/// Dynamic shared memory of a block. Without room for the tile the kernels read it twice.
struct Memory {
  int64_t bytes;
  bool staged;
};

constexpr int64_t most_staged_bytes = 160 << 10;

template <class T>
Memory forward_memory(const NormCanon<T>& in) {
  const int64_t tile =
      (tile_tokens_of(in.sequences.channels) + in.taps - 1) * in.sequences.channels * sizeof(T);
  return tile <= most_staged_bytes ? Memory{tile, true} : Memory{0, false};
}

template <class T>
Memory backward_memory(const NormCanon<T>& in) {
  const int64_t channels = in.sequences.channels, reach = in.taps > 0 ? in.taps - 1 : 0;
  const int64_t sums = block_shape(channels).parts * channels * (1 + in.taps) * sizeof(float);
  const int64_t tile = 2 * (tile_tokens_of(channels) + reach) * channels * sizeof(T);
  return sums + tile <= most_staged_bytes ? Memory{sums + tile, true} : Memory{sums, false};
}

/// More than 48 KiB must be allowed.
template <class Kernel>
void allow(Kernel kernel, const Memory& memory) {
  cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(memory.bytes));
}

template <class T>
using BackwardKernel = void (*)(NormCanon<T>, const T*, const T*, T*, T*, float*, int, bool);

/// The kernel for such arguments, allowed the shared memory that it needs.
template <class T>
BackwardKernel<T> backward_kernel_for(const NormCanon<T>& in) {
  BackwardKernel<T> kernel = nullptr;
  with_taps(in.taps, in.sequences.doc_ids, [&](auto taps, auto documents) {
    kernel = backward_kernel<T, decltype(taps)::value, decltype(documents)::value>;
  });
  allow(kernel, backward_memory(in));
  return kernel;
}

}  // namespace

template <class T>
void norm_canon_forward(const NormCanon<T>& in, T* y, cudaStream_t stream) {
  const Sequences& s = in.sequences;
  if (s.batch * s.length == 0) return;
  if (in.taps == 0) {
    constexpr int threads = 256;
    constexpr int tokens = threads / warp_size;
    const auto blocks = static_cast<unsigned>((s.batch * s.length + tokens - 1) / tokens);
    norm_kernel<<<blocks, threads, 0, stream>>>(in, y);
    return;
  }
  const BlockShape shape = block_shape(s.channels);
  with_taps(in.taps, s.doc_ids, [&](auto taps, auto documents) {
    if constexpr (decltype(taps)::value > 0) {
      const auto kernel = norm_canon_kernel<T, decltype(taps)::value, decltype(documents)::value>;
      const Memory memory = forward_memory(in);
      allow(kernel, memory);
      kernel<<<static_cast<unsigned>(tile_count(s)), shape.threads, memory.bytes, stream>>>(
          in, y, shape.parts, memory.staged);
    }
  });
}

template <class T>
int64_t norm_canon_partial_rows(const NormCanon<T>& in, int multiprocessors) {
  const Sequences& s = in.sequences;
  int resident = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident,
                                                backward_kernel_for(in),
                                                block_shape(s.channels).threads,
                                                backward_memory(in).bytes);
  const int64_t blocks = int64_t{multiprocessors} * (resident > 1 ? resident : 1);
  return tile_count(s) < blocks ? tile_count(s) : blocks;
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
  const BlockShape shape = block_shape(s.channels);
  const Memory memory = backward_memory(in);
  backward_kernel_for(
      in)<<<static_cast<unsigned>(partial_rows), shape.threads, memory.bytes, stream>>>(
      in, grad_y, grad_residual, y, grad_x, partial, shape.parts, memory.staged);
}

template int64_t norm_canon_partial_rows(const NormCanon<float>&, int);
template int64_t norm_canon_partial_rows(const NormCanon<bfloat16>&, int);
template void norm_canon_forward(const NormCanon<float>&, float*, cudaStream_t);
template void norm_canon_forward(const NormCanon<bfloat16>&, bfloat16*, cudaStream_t);
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
