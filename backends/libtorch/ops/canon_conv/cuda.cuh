#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/libtorch/ops/canon_conv/cuda.h"
#include "backends/libtorch/ops/common/cuda.cuh"

/// The causal convolution of a Canon layer as a sequential scan over time: a thread owns a few
/// channels and reads the tokens of a time tile one after the other. The last tokens stay in
/// registers, where the taps read them, and the next ones are prefetched. So each input is read
/// once, except for the halo of K - 1 tokens before a tile, and an operation that goes on from the
/// convolution's output reads no memory for it.
///
/// The registers are a ring of as many tokens as the body of the loop over time, unrolled, handles:
/// so every index is a constant. With a ring of 4 and t a multiple of 4 from the tile's beginning,
/// token t + i has index i, and the token before it index (i + 3) % 4.
namespace forge::ops::cuda {

/// Tokens begin … end - 1 of a row of the batch.
struct TimeTile {
  int64_t first_token;  ///< of the row, in the batch
  int begin, end;
  int length;  ///< of the row
};

/// All tiles of a batch; the last of a row may be shorter than the others.
struct TimeTiles {
  unsigned size, per_row, count;

  __device__ __forceinline__ TimeTile at(const Sequences& s, unsigned index) const {
    const unsigned length = static_cast<unsigned>(s.length), row = index / per_row;
    const unsigned begin = (index - row * per_row) * size;
    return {row * s.length,
            static_cast<int>(begin),
            static_cast<int>(min(begin + size, length)),
            static_cast<int>(length)};
  }
};

inline TimeTiles tiles_of_size(const Sequences& s, int64_t size) {
  const int64_t per_row = (s.length + size - 1) / size;
  return {static_cast<unsigned>(size),
          static_cast<unsigned>(per_row),
          static_cast<unsigned>(s.batch * per_row)};
}

/// Tiles for `resident` workers, one each in a wave. Long tiles read few halos but leave workers
/// idle in the last wave: this is the multiple of `step` with the least time over all waves.
inline TimeTiles balanced_tiles(const Sequences& s, int64_t resident, int64_t step) {
  // What the beginning of a tile costs, in tokens: the halo, and the wait for the first loads.
  constexpr int64_t beginning = 8;
  TimeTiles best = tiles_of_size(s, std::max<int64_t>((s.length + step - 1) / step, 1) * step);
  const auto time = [&](const TimeTiles& x) {
    return (x.count + resident - 1) / resident * (x.size + beginning);
  };
  for (int64_t size = step; size < s.length; size += step) {
    const TimeTiles other = tiles_of_size(s, size);
    if (time(other) < time(best)) best = other;
  }
  return best;
}

/// Tokens that the body of a loop over time handles.
template <int taps>
constexpr int ring_size = taps > 0 ? 4 : 2;

/// Tokens before a tile that its convolution reads.
template <int taps>
constexpr int halo_of = taps > 0 ? taps - 1 : 0;

/// Tokens of a tile without a convolution: nothing is read twice, so tiles may be short.
constexpr int tile_without_taps = 4;

/// The ring index of the token `lag` before that of index i.
template <int ring>
__device__ __forceinline__ constexpr int index_before(int i, int lag) {
  return (i + ring - lag) % ring;
}

/// Reads a thread's channels of the tokens of a row in their order, `count` tokens ahead.
template <class T, int count, int width>
struct Prefetcher {
  static constexpr int step = vector_width<T, width>, accesses = width / step;
  Vector<T, step> vectors[count][accesses];
  const T* source;  ///< of the token that is loaded next
  int64_t stride;
  int token, limit;

  /// Tokens first, first + 1, …; those before 0 and from `end` on read as zeros. `row` is the
  /// address of the channels of token 0, `apart` the elements from token to token.
  __device__ __forceinline__ void begin(const T* row, int64_t apart, int first, int end) {
    source = row + first * apart;
    stride = apart;
    token = first;
    limit = end;
#pragma unroll
    for (int i = 0; i < count; ++i) load(i, token >= 0);
  }
  /// The next token, which is the i'th of the loop's body.
  __device__ __forceinline__ void next(int i, float (&out)[width]) {
#pragma unroll
    for (int j = 0; j < accesses; ++j) to_floats(vectors[i][j], out + j * step);
    load(i, true);
  }

 private:
  __device__ __forceinline__ void load(int i, bool exists) {
#pragma unroll
    for (int j = 0; j < accesses; ++j) {
      vectors[i][j] = {};
      if (exists && token < limit) vectors[i][j] = load_vector<T, step>(source + j * step);
    }
    source += stride;
    ++token;
  }
};

/// Loads the `halo` tokens before `first` into a ring in which `first` will have index 0.
template <int halo, class T, int ring, int width>
__device__ __forceinline__ void load_halo(const T* row,
                                          int64_t stride,
                                          int first,
                                          float (&x)[ring][width]) {
#pragma unroll
  for (int lag = 1; lag <= halo; ++lag) {
    float(&token)[width] = x[index_before<ring>(0, lag)];
    fill(token, 0);
    if (first >= lag) load_input(row + (first - lag) * stride, token);
  }
}

/// Document ids of the tokens of a ring; without `documents` nothing.
template <int ring, bool documents>
struct DocumentWindow {
  int32_t ids[documents ? ring : 1];

  /// Loads those of all tokens before `first`.
  __device__ __forceinline__ void begin(const Sequences& s, const TimeTile& tile, int first) {
#pragma unroll
    for (int i = 0; i < ring; ++i) load(s, tile, first - ring + i, i);
  }
  /// That of token t, index i.
  __device__ __forceinline__ void load(const Sequences& s, const TimeTile& tile, int t, int i) {
    if constexpr (documents)
      ids[i] = t >= 0 && t < tile.length ? __ldg(s.doc_ids + tile.first_token + t) : -1;
  }
  __device__ __forceinline__ bool same(int i, int j) const {
    if constexpr (documents) return ids[i] == ids[j];
    return true;
  }
};

/// The taps of neighbouring channels from weights [C, taps], current token first. A residual adds
/// one to the current token's.
template <int taps, int width>
__device__ __forceinline__ void load_taps(const float* weights,
                                          int64_t channel,
                                          bool residual,
                                          float (&out)[taps][width]) {
  float stored[width * taps];
  load_input(weights + channel * taps, stored);
#pragma unroll
  for (int i = 0; i < width; ++i) {
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) {
      out[tap][i] = stored[i * taps + taps - 1 - tap] + (residual && tap == 0 ? 1.0f : 0.0f);
    }
  }
}

/// out = sum over taps j of w[j] x[t - j] for the token t of index i; without taps x[t].
template <int taps, int ring, int width, bool documents, int rows>
__device__ __forceinline__ void convolve(const float (&x)[ring][width],
                                         const DocumentWindow<ring, documents>& docs,
                                         const float (&w)[rows][width],
                                         int i,
                                         float (&out)[width]) {
#pragma unroll
  for (int j = 0; j < width; ++j) out[j] = taps > 0 ? w[0][j] * x[i][j] : x[i][j];
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) {
    const int before = index_before<ring>(i, tap);
    if (!docs.same(i, before)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) out[j] += w[tap][j] * x[before][j];
  }
}

/// The transpose: out = sum over taps j of w[j] grad[t + j]; index i holds the gradient of token
/// t + K - 1.
template <int taps, int ring, int width, bool documents, int rows>
__device__ __forceinline__ void convolve_transposed(const float (&grad)[ring][width],
                                                    const DocumentWindow<ring, documents>& docs,
                                                    const float (&w)[rows][width],
                                                    int i,
                                                    float (&out)[width]) {
  const int index = index_before<ring>(i, halo_of<taps>);
#pragma unroll
  for (int j = 0; j < width; ++j) out[j] = taps > 0 ? w[0][j] * grad[index][j] : grad[index][j];
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) {
    const int after = index_before<ring>(i, taps - 1 - tap);
    if (!docs.same(index, after)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) out[j] += w[tap][j] * grad[after][j];
  }
}

/// sums[j] += grad[t + j] x[t], for that token t.
template <int taps, int ring, int width, bool documents, int rows>
__device__ __forceinline__ void accumulate_taps(const float (&grad)[ring][width],
                                                const DocumentWindow<ring, documents>& docs,
                                                const float (&x)[width],
                                                int i,
                                                float (&sums)[rows][width]) {
  const int index = index_before<ring>(i, halo_of<taps>);
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    const int after = index_before<ring>(i, taps - 1 - tap);
    if (!docs.same(index, after)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) sums[tap][j] += grad[after][j] * x[j];
  }
}

/// Calls run with a number of taps, 0 (no convolution), 2, 3 or 4, and with whether rows hold
/// several documents, both as types with a constant value: kernels are compiled for each.
template <class Run>
void dispatch(int taps, bool documents, const Run& run) {
  const auto with_documents = [&](auto count) {
    documents ? run(count, std::true_type{}) : run(count, std::false_type{});
  };
  switch (taps) {
    case 0: return run(std::integral_constant<int, 0>{}, std::false_type{});
    case 2: return with_documents(std::integral_constant<int, 2>{});
    case 3: return with_documents(std::integral_constant<int, 3>{});
    case 4: return with_documents(std::integral_constant<int, 4>{});
  }
}

// Kernels over channel pairs. A thread owns two vectors of channels, a and b, because the operation
// after the convolution combines channels that lie apart: gate and up, or the halves of a rotated
// head.
// Grid: [channel pairs / 32, blocks over time]. Block: 32 x 4 threads, for 32 neighbouring pairs
// and 4 time tiles at a time. A block processes tile after tile: it reads its taps once and writes
// one row of sums for their gradients.

/// The first channels of a thread's two vectors in a token; -1: the thread has none.
struct ChannelPair {
  int64_t a, b;
};

constexpr int pairs_of_block = warp_size, tiles_of_block = 4;
constexpr int pair_threads = pairs_of_block * tiles_of_block;
#ifndef FORGE_CUDA_EMULATION
inline const dim3 pair_block(pairs_of_block, tiles_of_block);
#endif

/// The pair of channels c … c + width - 1 and those half of all channels behind them.
template <int width>
__device__ __forceinline__ ChannelPair halves_pair(int lane, int64_t channels) {
  const int64_t first = (int64_t{blockIdx.x} * pairs_of_block + lane) * width;
  if (first >= channels / 2) return {-1, -1};
  return {first, channels / 2 + first};
}

#ifndef FORGE_CUDA_EMULATION
struct PairGrid {
  dim3 blocks;
  TimeTiles tiles;
};

template <int taps, class Kernel>
PairGrid pair_grid(Kernel kernel, const Sequences& s, int64_t pairs) {
  const int64_t columns = (pairs + pairs_of_block - 1) / pairs_of_block;
  const int64_t rows = std::max<int64_t>(resident_blocks(kernel, pair_threads) / columns, 1);
  const TimeTiles tiles = taps > 0 ? balanced_tiles(s, rows * tiles_of_block, ring_size<taps>)
                                   : tiles_of_size(s, tile_without_taps);
  const int64_t work = (int64_t{tiles.count} + tiles_of_block - 1) / tiles_of_block;
  return {dim3(static_cast<unsigned>(columns), static_cast<unsigned>(balanced_blocks(work, rows))),
          tiles};
}
#endif

/// Calls run(tile) for each of a thread's tiles.
template <class Run>
__device__ __forceinline__ void for_each_tile(const Sequences& s,
                                              const TimeTiles& tiles,
                                              const Run& run) {
  for (unsigned index = blockIdx.y * tiles_of_block + threadIdx.y; index < tiles.count;
       index += gridDim.y * tiles_of_block) {
    run(tiles.at(s, index));
  }
}

/// The taps of a pair's channels, or sums for their gradients.
template <int taps, int width>
struct PairTaps {
  float side[2][taps > 0 ? taps : 1][width];

  __device__ __forceinline__ void load(const float* weights,
                                       bool residual,
                                       const ChannelPair& pair) {
    if constexpr (taps > 0) {
      load_taps(weights, pair.a, residual, side[0]);
      load_taps(weights, pair.b, residual, side[1]);
    }
  }
  __device__ __forceinline__ void clear() {
    if constexpr (taps > 0) {
#pragma unroll
      for (int tap = 0; tap < taps; ++tap) {
        fill(side[0][tap], 0);
        fill(side[1][tap], 0);
      }
    }
  }
};

/// Adds a block's sums up, one tile of the block after the other, and writes them to
/// partial[blockIdx.y][C][taps], in the order of the weights' taps. All threads call it; those
/// without a pair have cleared sums. Shared memory: 1024 width taps bytes.
template <int taps, int width>
__device__ __forceinline__ void write_tap_sums(const PairTaps<taps, width>& sums,
                                               const ChannelPair& pair,
                                               int64_t channels,
                                               float* partial) {
  if constexpr (taps > 0) {
    constexpr int per_side = width * taps;
    __shared__ float memory[tiles_of_block][2 * per_side][pairs_of_block];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
#pragma unroll
        for (int tap = 0; tap < taps; ++tap) {
          const int n = (side * width + j) * taps + taps - 1 - tap;
          memory[threadIdx.y][n][threadIdx.x] = sums.side[side][tap][j];
        }
      }
    }
    __syncthreads();
    if (pair.a < 0) return;
    float* row = partial + blockIdx.y * channels * taps;
    for (int n = threadIdx.y; n < 2 * per_side; n += tiles_of_block) {
      float sum = 0;
#pragma unroll
      for (int tile = 0; tile < tiles_of_block; ++tile) sum += memory[tile][n][threadIdx.x];
      const bool second = n >= per_side;
      row[(second ? pair.b : pair.a) * taps + n - (second ? per_side : 0)] = sum;
    }
  }
}

}  // namespace forge::ops::cuda
