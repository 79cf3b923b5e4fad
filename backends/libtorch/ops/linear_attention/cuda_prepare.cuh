#pragma once

#include "backends/libtorch/ops/common/tensor_cores.cuh"
#include "backends/libtorch/ops/linear_attention/cuda.h"

/// What is computed of each chunk by itself. In a chunk of n <= 64 tokens, with b the sums of log
/// decays from its first token to each, s the scale, e = exp(b) and f = exp(b_n - b), numbers of a
/// token or of each of its channels:
///     Qb = s e Q,  Ke = f K (with beta, but without the delta rule: f beta K),  w = exp(b_n)
///     scalar decay   P_ij = s q_i.k_j exp(b_i - b_j) beta_j                      for i >= j;
///                    s Q K^T alone is prepared here, once for all heads that share q and k
///     delta rule     P_ij = s q_i.k_j exp(b_i - b_j),  Kb = -beta e K,  Tm = (I + L)^-1,
///                    L_ij = beta_i k_i.k_j exp(b_i - b_j)                        for i > j
///     channel decay  P_ij = s sum_c q_ic k_jc exp(b_ic - b_jc)
/// All differences under exp are of an earlier and a later sum, and so at most 0, but for the two
/// factors exp(b_i - m) exp(m - b_j), m = (b_1 + b_n) / 2, that stand for exp(b_i - b_j) where no
/// channel's sums differ by more than 150. Rows past T are zeros with a log decay of 0.
namespace forge::ops::cuda {

constexpr int chunk_tokens = 64;
constexpr float most_decay_of_factors = 150;

/// exp of a difference that rounding alone can make positive.
__device__ __forceinline__ float faded(float difference) {
  return power_of_two(log2_of_e * (difference < 0 ? difference : 0));
}

struct alignas(8) TwoFloats {
  float first, second;
};

/// Where a block's chunk lies.
struct ChunkPlace {
  int row, head, index;
  int tokens;           ///< of the chunk, at most 64
  int64_t head_index;   ///< b H + h
  int64_t chunk_index;  ///< (b H + h) NC + index
  int64_t key_index;    ///< the same of the heads of q and k, which may be one
  int64_t first_token;  ///< b T + 64 index

  __device__ ChunkPlace(const LinearAttentionArguments& in, int row, int head, int index)
      : row(row), head(head), index(index) {
    const int64_t chunks = (in.length + chunk_tokens - 1) / chunk_tokens;
    const int64_t left = in.length - int64_t{index} * chunk_tokens;
    tokens = left < chunk_tokens ? static_cast<int>(left) : chunk_tokens;
    head_index = row * in.heads + head;
    chunk_index = head_index * chunks + index;
    key_index = in.k.head == 0 ? row * chunks + index : chunk_index;
    first_token = row * in.length + int64_t{index} * chunk_tokens;
  }
  /// The chunk's first row of token rows.
  __device__ const bfloat16* rows(const TokenRows& x) const {
    return x.data + row * x.row + int64_t{index} * chunk_tokens * x.token + head * x.head;
  }
  /// The offset of token t in [B, T, H].
  __device__ int64_t number(const LinearAttentionArguments& in, int t) const {
    return (first_token + t) * in.heads + head;
  }
};

/// log_decay (or beta, 1 without) of tokens 2 l and 2 l + 1.
__device__ __forceinline__ TwoFloats read_decays(const LinearAttentionArguments& in,
                                                 const ChunkPlace& place,
                                                 int lane) {
  const int t = 2 * lane;
  return {t < place.tokens ? in.log_decay[place.number(in, t)] : 0,
          t + 1 < place.tokens ? in.log_decay[place.number(in, t + 1)] : 0};
}
__device__ __forceinline__ TwoFloats read_betas(const LinearAttentionArguments& in,
                                                const ChunkPlace& place,
                                                int lane) {
  const auto beta = [&](int t) {
    return t >= place.tokens ? 0 : in.beta ? in.beta[place.number(in, t)] : 1;
  };
  return {beta(2 * lane), beta(2 * lane + 1)};
}

/// b_t of tokens 2 l and 2 l + 1 from their log decays, in lane l of a warp, all of whose lanes
/// call it.
__device__ __forceinline__ TwoFloats sum_decays_in_warp(const TwoFloats& own, int lane) {
  const float first = own.first, second = own.second;
  float sum = first + second;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const float before = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += before;
  }
  float before = __shfl_up_sync(0xffffffffu, sum, 1);
  if (lane == 0) before = 0;
  // Each as the sum up to the one before it and its own: never above it.
  return {before + first, before + first + second};
}

/// sums[t] = b_t and betas[t] in shared memory, by the first warp and two others; the caller sets
/// the barrier behind it.
__device__ __forceinline__ void sum_decays(const LinearAttentionArguments& in,
                                           const ChunkPlace& place,
                                           float* sums,
                                           float* betas) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 32) {
    const TwoFloats own = sum_decays_in_warp(read_decays(in, place, thread), thread);
    sums[2 * thread] = own.first;
    sums[2 * thread + 1] = own.second;
  } else if (thread >= 64 && thread < 64 + chunk_tokens) {
    const int t = thread - 64;
    const bool inside = t < place.tokens;
    betas[t] = !inside ? 0 : in.beta ? in.beta[place.number(in, t)] : 1;
  }
}

/// sums[t * keys + c] = b_tc in shared memory, two halves of the tokens side by side; ends with a
/// barrier.
template <int keys>
__device__ __forceinline__ void sum_channel_decays(const LinearAttentionArguments& in,
                                                   const ChunkPlace& place,
                                                   float* sums) {
  constexpr int half = chunk_tokens / 2;
  const int thread = static_cast<int>(threadIdx.x), channel = thread % keys;
  const int part = thread / keys;
  if (part < 2) {
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < half; ++i) {
      const int t = part * half + i;
      if (t < place.tokens) sum += in.log_decay[place.number(in, t) * keys + channel];
      sums[t * keys + channel] = sum;
    }
  }
  __syncthreads();
  if (part < 2) {
    const float before = sums[(half - 1) * keys + channel];
    // Both parts do a half of the second half's rows.
    for (int t = half + part; t < chunk_tokens; t += 2) sums[t * keys + channel] += before;
  }
  __syncthreads();
}

/// Whether a channel's sums differ by more than the two factors can express; for all threads alike.
template <int keys>
__device__ __forceinline__ bool needs_differences(const float* sums) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool beyond = thread < keys && sums[thread] - sums[(chunk_tokens - 1) * keys + thread] >
                                           most_decay_of_factors;
  return __syncthreads_or(beyond) != 0;
}

/// exp(sign (b - m)) for the channel's middle m.
template <int keys>
__device__ __forceinline__ float factor(const float* sums, int t, int channel, float sign) {
  const float middle = 0.5f * (sums[channel] + sums[(chunk_tokens - 1) * keys + channel]);
  return power_of_two(log2_of_e * sign * (sums[t * keys + channel] - middle));
}

/// Eight neighbouring channels at once, 16 bytes.
struct Eight {
  uint4 words;
  __device__ __forceinline__ static Eight from(const bfloat16* p) {
    return {*reinterpret_cast<const uint4*>(p)};
  }
  __device__ __forceinline__ void write(bfloat16* p) const { *reinterpret_cast<uint4*>(p) = words; }
  /// Each times scale(its number).
  template <class Scale>
  __device__ __forceinline__ Eight times(const Scale& scale) const {
    const auto both = [&](unsigned word, int i) {
      return pack(low_half(word) * scale(i), high_half(word) * scale(i + 1));
    };
    return {{both(words.x, 0), both(words.y, 2), both(words.z, 4), both(words.w, 6)}};
  }
  /// The same as the sum of two: to bfloat16 rounded, and what rounding has left of it.
  template <class Scale>
  __device__ __forceinline__ void times(const Scale& scale, bfloat16* rounded, bfloat16* rest) const {
    const Eight all = times(scale);
    const auto both = [&](unsigned word, unsigned of, int i) {
      return pack(low_half(word) * scale(i) - low_half(of),
                  high_half(word) * scale(i + 1) - high_half(of));
    };
    all.write(rounded);
    Eight{{both(words.x, all.words.x, 0),
           both(words.y, all.words.y, 2),
           both(words.z, all.words.z, 4),
           both(words.w, all.words.w, 6)}}
        .write(rest);
  }
};

/// Tm = (I + L)^-1 in float32, unit lower triangular: forward substitution in the four 16 x 16
/// blocks of the diagonal, a thread for each column; then T_ij = -T_ii sum_{j <= t < i} L_it T_tj,
/// a thread for each element, one diagonal of blocks after another. 1.3e5 multiply-adds.
constexpr int inverse_stride = chunk_tokens + 1;
__device__ __forceinline__ void invert(const float* l, float* inverse, float* scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < chunk_tokens) {
    const int block = thread / 16 * 16, column = thread % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float sum = i == column ? 1 : 0;
#pragma unroll
      for (int t = 0; t < i; ++t) sum -= l[(block + i) * inverse_stride + block + t] * x[t];
      x[i] = sum;
      inverse[(block + i) * inverse_stride + block + column] = sum;
    }
  }
  const int i = thread / 16, j = thread % 16;
  for (int distance = 1; distance < 4; ++distance) {
    __syncthreads();
    for (int block = 0; block + distance < 4; ++block) {
      const int row = (block + distance) * 16 + i, column = block * 16 + j;
      float sum = 0;
#pragma unroll 8
      for (int t = block * 16; t < (block + distance) * 16; ++t)
        sum += l[row * inverse_stride + t] * inverse[t * inverse_stride + column];
      scratch[block * 256 + thread] = sum;
    }
    __syncthreads();
    for (int block = 0; block + distance < 4; ++block) {
      const int first = (block + distance) * 16;
      float sum = 0;
#pragma unroll
      for (int t = 0; t < 16; ++t)
        sum -=
            inverse[(first + i) * inverse_stride + first + t] * scratch[block * 256 + t * 16 + j];
      inverse[(first + i) * inverse_stride + block * 16 + j] = sum;
    }
  }
  __syncthreads();
}

using ScoreTile = Tile<chunk_tokens, chunk_tokens>;

/// Of scalar decay: s Q K^T of a chunk, on the diagonal and below it.
__device__ __forceinline__ void write_products(const LinearAttentionArguments& in,
                                               const ChunkPlace& place,
                                               ScoreTile& tile) {
  float* to = in.products + place.key_index * chunk_tokens * chunk_tokens;
  tile.for_each_pair([&](int i, int j, float x, float y) {
    if (i >= j)
      *reinterpret_cast<TwoFloats*>(to + i * chunk_tokens + j) = {in.scale * x, in.scale * y};
  });
}
/// What stands above the diagonal is any number.
__device__ __forceinline__ void read_products(const LinearAttentionArguments& in,
                                              const ChunkPlace& place,
                                              ScoreTile& tile) {
  const float* from = in.products + place.key_index * chunk_tokens * chunk_tokens;
  tile.for_each_pair([&](int i, int j, float& x, float& y) {
    TwoFloats both{0, 0};
    if (i >= j) both = *reinterpret_cast<const TwoFloats*>(from + i * chunk_tokens + j);
    x = both.first;
    y = both.second;
  });
}
/// Asks for them, of which threads have a line of 128 bytes each.
__device__ __forceinline__ void prefetch_products(const LinearAttentionArguments& in,
                                                  const ChunkPlace& place) {
  constexpr int line = 32;
  const int at = static_cast<int>(threadIdx.x) * line;
  if (at < chunk_tokens * chunk_tokens)
    prefetch(in.products + place.key_index * chunk_tokens * chunk_tokens + at);
}

template <Recurrence kind, int keys>
struct PrepareMemory {
  static constexpr int rest = kind == Recurrence::channel_decay ? chunk_tokens * padded(keys) : 1;
  bfloat16 q[chunk_tokens * padded(keys)], k[chunk_tokens * padded(keys)];
  alignas(16) bfloat16 q_rest[rest], k_rest[rest];  ///< what rounding leaves of the two factors
  float sums[kind == Recurrence::channel_decay ? chunk_tokens * keys : chunk_tokens];
  float betas[chunk_tokens];
  float l[kind == Recurrence::delta_rule ? chunk_tokens * inverse_stride : 1];
  float inverse[kind == Recurrence::delta_rule ? chunk_tokens * inverse_stride : 1];
  float products[kind == Recurrence::delta_rule ? 3 * 256 : 1];
};

/// s Q K^T of scalar decay, whose other kernels read q and k themselves.
/// Grid: chunks, heads of q and k, rows. Block: 256 threads. Shared memory: a ProductsMemory.
/// Reads 4 K bytes of a token and head of keys, writes 128. 64 K multiply-adds.
template <int keys>
struct ProductsMemory {
  bfloat16 q[chunk_tokens * padded(keys)], k[chunk_tokens * padded(keys)];
};
template <int keys>
__global__ void __launch_bounds__(tile_threads, 2) products_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<ProductsMemory<keys>*>(shared_memory());
  const ChunkPlace place(in, blockIdx.z, blockIdx.y, blockIdx.x);
  copy_rows<chunk_tokens, keys>(memory.q, place.rows(in.q), in.q.token, place.tokens);
  copy_rows<chunk_tokens, keys>(memory.k, place.rows(in.k), in.k.token, place.tokens);
  wait_for_copies();
  __syncthreads();
  ScoreTile products;
  products.clear();
  products.template add_product<keys, false, true>(
      memory.q, padded(keys), memory.k, padded(keys));
  write_products(in, place, products);
}

/// P, w, Qb and Ke; of the delta rule Kb and Tm too.
/// Grid: chunks, heads, rows. Block: 256 threads. Shared memory: a PrepareMemory, at most 101 KiB.
/// Reads q and k (and log_decay of channels), writes Qb and Ke (and Kb): 8 K (channels 12 K, delta
/// rule 10 K) bytes of a token and head, and 128 (256) of P (and Tm). 64 K (channels 192 K, delta
/// rule 128 K) multiply-adds.
template <Recurrence kind, int keys>
__global__ void __launch_bounds__(tile_threads, 2) prepare_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<PrepareMemory<kind, keys>*>(shared_memory());
  constexpr bool channels = kind == Recurrence::channel_decay;
  constexpr bool delta = kind == Recurrence::delta_rule;
  constexpr int stride = padded(keys), last = chunk_tokens - 1;
  const int thread = static_cast<int>(threadIdx.x);
  const ChunkPlace place(in, blockIdx.z, blockIdx.y, blockIdx.x);
  copy_rows<chunk_tokens, keys>(memory.q, place.rows(in.q), in.q.token, place.tokens);
  copy_rows<chunk_tokens, keys>(memory.k, place.rows(in.k), in.k.token, place.tokens);
  const float* sums = memory.sums;
  bool differences = false;
  if constexpr (channels) {
    sum_channel_decays<keys>(in, place, memory.sums);
    differences = needs_differences<keys>(sums);
  } else {
    sum_decays(in, place, memory.sums, memory.betas);
  }
  wait_for_copies();
  __syncthreads();

  const int64_t rows = place.chunk_index * chunk_tokens;
  for (int i = thread; i < chunk_tokens * keys / 8; i += tile_threads) {
    const int t = i / (keys / 8), c = i % (keys / 8) * 8;
    bfloat16 *own_q = memory.q + t * stride + c, *own_k = memory.k + t * stride + c;
    const Eight q = Eight::from(own_q), k = Eight::from(own_k);
    const int64_t to = (rows + t) * keys + c;
    if constexpr (channels) {
      const float *b = sums + t * keys + c, *end = sums + last * keys + c;
      q.times([&](int j) { return in.scale * faded(b[j]); }).write(in.q_begin + to);
      k.times([&](int j) { return faded(end[j] - b[j]); }).write(in.k_end + to);
      if (differences) continue;
      const int at = t * stride + c;
      q.times([&](int j) { return in.scale * factor<keys>(sums, t, c + j, 1); },
              own_q,
              memory.q_rest + at);
      k.times(
          [&](int j) { return factor<keys>(sums, t, c + j, -1); }, own_k, memory.k_rest + at);
    } else {
      const float e = faded(sums[t]), f = faded(sums[last] - sums[t]), beta = memory.betas[t];
      q.times([&](int) { return in.scale * e; }).write(in.q_begin + to);
      k.times([&](int) { return f; }).write(in.k_end + to);
      k.times([&](int) { return -beta * e; }).write(in.k_begin + to);
    }
  }
  if (thread < keys)
    in.whole[place.chunk_index * keys + thread] =
        faded(channels ? sums[last * keys + thread] : sums[last]);
  bfloat16* scores = in.scores + rows * chunk_tokens;
  if (channels && differences) {
    for (int at = thread; at < chunk_tokens * chunk_tokens; at += tile_threads) {
      const int i = at / chunk_tokens, j = at % chunk_tokens;
      float sum = 0;
      if (i >= j)
        for (int c = 0; c < keys; ++c)
          sum += to_float(memory.q[i * stride + c]) * to_float(memory.k[j * stride + c]) *
                 faded(sums[i * keys + c] - sums[j * keys + c]);
      scores[at] = from_float<bfloat16>(in.scale * sum);
    }
    return;
  }
  if (channels) __syncthreads();
  // Selects, as what stands above the diagonal may be infinite.
  const auto score = [&](int i, int j, float product) -> float {
    if (i < j) return 0;
    if (channels) return product;
    return in.scale * product * faded(sums[i] - sums[j]);
  };
  ScoreTile products;
  products.clear();
  products.template add_product<keys, false, true>(memory.q, stride, memory.k, stride);
  if constexpr (channels) {
    // The factors are rounded where those of the other kinds, q and k themselves, are not.
    products.template add_product<keys, false, true>(memory.q_rest, stride, memory.k, stride);
    products.template add_product<keys, false, true>(memory.q, stride, memory.k_rest, stride);
  }
  products.for_each_pair([&](int i, int j, float a, float b) {
    word_at(scores + i * chunk_tokens + j) = pack(score(i, j, a), score(i, j + 1, b));
  });
  if constexpr (delta) {
    products.clear();
    products.template add_product<keys, false, true>(memory.k, stride, memory.k, stride);
    const auto element = [&](int i, int j, float product) {
      memory.l[i * inverse_stride + j] =
          i > j ? memory.betas[i] * product * faded(sums[i] - sums[j]) : 0;
      memory.inverse[i * inverse_stride + j] = 0;
    };
    products.for_each_pair([&](int i, int j, float a, float b) {
      element(i, j, a);
      element(i, j + 1, b);
    });
    __syncthreads();
    invert(memory.l, memory.inverse, memory.products);
    for (int at = 2 * thread; at < chunk_tokens * chunk_tokens; at += 2 * tile_threads) {
      const float* x = memory.inverse + at / chunk_tokens * inverse_stride + at % chunk_tokens;
      word_at(in.inverse + rows * chunk_tokens + at) = pack(x[0], x[1]);
    }
  }
}

}  // namespace forge::ops::cuda
