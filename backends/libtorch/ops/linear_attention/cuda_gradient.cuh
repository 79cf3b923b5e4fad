#pragma once

#include "backends/libtorch/ops/linear_attention/cuda_scan.cuh"

/// The gradients of a chunk's q, k, log_decay and beta, from the state S before it and the gradient
/// dS' of the state behind it: a block sees all columns of both, a slice after another. Symbols as
/// in cuda_prepare.cuh; sums over columns of v:
///     Y = dO S^T,  W = U dS'^T,  N = dO U^T  (U = V without the delta rule),  z = w rowsum(S *
///     dS') Z = dR S^T,  M = dR U^T,  r = rowsum(dR * V)  (delta rule)
/// The gradient of w times w is z; what S' has of the chunk's own tokens goes into dlg by the token
/// that wrote it, so dlg_t = sum_{i >= t} db_i + sum_{i < t} k_i.kB_i + z, and no sum cancels.
namespace forge::ops::cuda {

constexpr int larger(int a, int b) { return a > b ? a : b; }

/// Blocks that share the heads of a chunk.
__device__ __host__ __forceinline__ int head_groups(const LinearAttentionArguments& in) {
  return (static_cast<int>(in.heads) + in.heads_of_block - 1) / in.heads_of_block;
}

template <Recurrence kind, int keys>
struct GradientMemory {
  static constexpr bool channels = kind == Recurrence::channel_decay;
  static constexpr bool delta = kind == Recurrence::delta_rule;
  static constexpr int state_size = larger(keys * slice_stride, chunk_tokens* padded(keys));

  bfloat16 q[chunk_tokens * padded(keys)], k[chunk_tokens * padded(keys)];
  /// S and dS' of a slice; afterwards what the kinds need, at least two [64, keys] of bfloat16 or
  /// one of float.
  alignas(16) bfloat16 state[state_size];
  bfloat16 grad_state[larger(state_size, 2 * chunk_tokens * (chunk_tokens + 1) - state_size)];
  bfloat16 grad_output[chunk_tokens * slice_stride], values[chunk_tokens * slice_stride];
  bfloat16 grad_writes[delta ? chunk_tokens * slice_stride : 8];
  bfloat16 inputs[delta ? chunk_tokens * slice_stride : 8];  ///< V beside U
  float sums[channels ? chunk_tokens * keys : chunk_tokens];
  float betas[chunk_tokens], state_products[keys];
  float row_sums[5][tile_warps * chunk_tokens / 2];
  float write_products[chunk_tokens], own_betas[chunk_tokens];
  float grad_sums[chunk_tokens], into_state[chunk_tokens];
};

template <int keys>
using KeyTile = Tile<chunk_tokens, keys>;

/// Sums over all columns of v.
template <Recurrence kind, int keys>
struct SliceSums {
  static constexpr bool delta = kind == Recurrence::delta_rule;
  KeyTile<keys> read, written;  ///< Y, W
  ScoreTile scores;             ///< N
  KeyTile<delta ? keys : 32> erased;
  std::conditional_t<delta, ScoreTile, Tile<32, 64>> solved;  ///< M
  float state_product = 0, write_product = 0;
};

/// Sums of neighbouring threads; `parts` a power of two.
template <int parts>
__device__ __forceinline__ float sum_of_parts(float x) {
#pragma unroll
  for (int distance = 1; distance < parts; distance *= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

/// sum a_i b_i over `count` neighbours, a multiple of 8.
template <int count>
__device__ __forceinline__ float dot(const bfloat16* a, const bfloat16* b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < count; i += 8) {
    const Eight x = Eight::from(a + i), y = Eight::from(b + i);
    const auto add = [&](unsigned u, unsigned w) {
      sum += low_half(u) * low_half(w);
      sum += high_half(u) * high_half(w);
    };
    add(x.words.x, y.words.x);
    add(x.words.y, y.words.y);
    add(x.words.z, y.words.z);
    add(x.words.w, y.words.w);
  }
  return sum;
}

/// Asks for what sum_slices reads.
template <Recurrence kind, int keys>
__device__ __forceinline__ void prefetch_slices(const LinearAttentionArguments& in,
                                                const ChunkPlace& place) {
  for (int index = 0; index * slice_columns < in.values; ++index) {
    const Slice slice(in, index);
    const int64_t state = place.chunk_index * keys * in.values + slice.begin;
    const int64_t values = place.number(in, 0) * in.values + slice.begin;
    const auto ask = [&](const bfloat16* from, int64_t stride) {
      prefetch_rows<chunk_tokens, slice_columns>(from, stride, place.tokens, slice.columns);
    };
    prefetch_rows<keys, slice_columns>(in.states + state, in.values, keys, slice.columns);
    prefetch_rows<keys, slice_columns>(in.grad_states + state, in.values, keys, slice.columns);
    ask(in.grad_output + values, in.heads * in.values);
    ask(place.rows(in.v) + slice.begin, in.v.token);
    if constexpr (kind == Recurrence::delta_rule) {
      ask(in.writes + values, in.heads * in.values);
      ask(in.grad_writes + values, in.heads * in.values);
    }
  }
}

/// Leaves state_products and write_products in shared memory, behind no barrier yet.
template <Recurrence kind, int keys>
__device__ __forceinline__ void sum_slices(const LinearAttentionArguments& in,
                                           const ChunkPlace& place,
                                           GradientMemory<kind, keys>& memory,
                                           SliceSums<kind, keys>& sums) {
  constexpr bool delta = kind == Recurrence::delta_rule;
  constexpr int parts = tile_threads / keys, columns = slice_columns / parts;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t value_stride = in.heads * in.values;
  sums.read.clear();
  sums.written.clear();
  sums.scores.clear();
  if constexpr (delta) {
    sums.erased.clear();
    sums.solved.clear();
  }
  for (int index = 0; index * slice_columns < in.values; ++index) {
    const Slice slice(in, index);
    const int64_t state = place.chunk_index * keys * in.values + slice.begin;
    const int64_t values = place.number(in, 0) * in.values + slice.begin;
    const auto copy_values = [&](bfloat16* to, const bfloat16* from, int64_t stride) {
      copy_rows<chunk_tokens, slice_columns>(to, from, stride, place.tokens, slice.columns);
    };
    copy_rows<keys, slice_columns>(memory.state, in.states + state, in.values, keys, slice.columns);
    copy_rows<keys, slice_columns>(
        memory.grad_state, in.grad_states + state, in.values, keys, slice.columns);
    copy_values(memory.grad_output, in.grad_output + values, value_stride);
    if constexpr (delta) {
      copy_values(memory.values, in.writes + values, value_stride);
      copy_values(memory.grad_writes, in.grad_writes + values, value_stride);
      copy_values(memory.inputs, place.rows(in.v) + slice.begin, in.v.token);
    } else {
      copy_values(memory.values, place.rows(in.v) + slice.begin, in.v.token);
    }
    wait_for_copies();
    __syncthreads();
    const auto add = [&](auto& tile, const bfloat16* a, const bfloat16* b) {
      tile.template add_product<slice_columns, false, true>(a, slice_stride, b, slice_stride);
    };
    add(sums.read, memory.grad_output, memory.state);
    add(sums.written, memory.values, memory.grad_state);
    add(sums.scores, memory.grad_output, memory.values);
    if constexpr (delta) {
      add(sums.erased, memory.grad_writes, memory.state);
      add(sums.solved, memory.grad_writes, memory.values);
      const int at = thread / 4 * slice_stride + thread % 4 * 16;
      sums.write_product += dot<16>(memory.grad_writes + at, memory.inputs + at);
    }
    const int at = thread / parts * slice_stride + thread % parts * columns;
    sums.state_product += dot<columns>(memory.state + at, memory.grad_state + at);
    __syncthreads();
  }
  const float of_row = sum_of_parts<parts>(sums.state_product);
  if (thread % parts == 0)
    memory.state_products[thread / parts] =
        of_row * in.whole[place.chunk_index * keys + thread / parts];
  if constexpr (delta) {
    const float of_token = sum_of_parts<4>(sums.write_product);
    if (thread % 4 == 0) memory.write_products[thread / 4] = of_token;
  }
}

/// A chunk's gradient of q or k, [64, keys] in registers: of a head or a group of heads.
template <int keys>
__device__ __forceinline__ void write_gradient(const LinearAttentionArguments& in,
                                               const ChunkPlace& place,
                                               KeyTile<keys>& tile,
                                               bfloat16* rounded,
                                               float* sums) {
  const int group = static_cast<int>(blockIdx.y), groups = head_groups(in);
  tile.for_each_pair([&](int t, int c, float a, float b) {
    if (t >= place.tokens) return;
    const int64_t at = ((place.first_token + t) * groups + group) * keys + c;
    if (rounded)
      word_at(rounded + at) = pack(a, b);
    else
      *reinterpret_cast<TwoFloats*>(sums + at) = {a, b};
  });
}

/// dlg_t and dbeta_t from each token's own parts, by the first threads; each sums as it needs.
template <Recurrence kind, int keys>
__device__ __forceinline__ void write_token_gradients(const LinearAttentionArguments& in,
                                                      const ChunkPlace& place,
                                                      const GradientMemory<kind, keys>& memory) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= place.tokens) return;
  float sum = 0, before = 0, state = 0;
  for (int i = chunk_tokens - 1; i >= t; --i) sum += memory.grad_sums[i];
  for (int i = 0; i < t; ++i) before += memory.into_state[i];
  for (int c = 0; c < keys; ++c) state += memory.state_products[c];
  in.grad_log_decay[place.number(in, t)] = sum + before + state;
  if (in.grad_beta) in.grad_beta[place.number(in, t)] = memory.own_betas[t];
}

/// With the delta rule:
///     H = s N * D,  dL = -M below the diagonal,  dG = beta_i dL * D,  G = K K^T
///     dQ = s e Y + H K,  dK = H^T Q + f W - beta e Z + dG K + dG^T K
///     dbeta_i = sum_j dL_ij G_ij D_ij + r_i - e k_i.Z_i
///     db_i = q_i.dQ_i + k_i.(-beta e Z + dG K - H^T Q - dG^T K)_i,  k.kB = f k.W
template <int keys>
__device__ __forceinline__ void finish(const LinearAttentionArguments& in,
                                       const ChunkPlace& place,
                                       GradientMemory<Recurrence::delta_rule, keys>& memory,
                                       SliceSums<Recurrence::delta_rule, keys>& sums) {
  constexpr int stride = padded(keys), last = chunk_tokens - 1;
  constexpr auto m = KeyTile<keys>::m, n = KeyTile<keys>::n;
  const int thread = static_cast<int>(threadIdx.x);
  const float *b = memory.sums, *betas = memory.betas;
  bfloat16 *h = memory.grad_output, *grad_products = memory.values;
  const auto pair = [&](int i, int j) { return faded(b[i] - b[j]); };
  const auto to_end = [&](int t) { return faded(b[last] - b[t]); };
  sums.scores.for_each_pair([&](int i, int j, float x, float y) {
    word_at(h + i * slice_stride + j) =
        pack(i >= j ? in.scale * x * pair(i, j) : 0, i > j ? in.scale * y * pair(i, j + 1) : 0);
  });
  sums.solved.for_each_pair([&](int i, int j, float& x, float& y) {
    x = i > j ? -x * pair(i, j) : 0;
    y = i > j + 1 ? -y * pair(i, j + 1) : 0;
    word_at(grad_products + i * slice_stride + j) = pack(x * betas[i], y * betas[i]);
  });
  sums.read.for_each_pair([&](int t, int, float& x, float& y) {
    const float e = in.scale * faded(b[t]);
    x *= e;
    y *= e;
  });
  // Row sums of dL * D * G go through shared memory.
  auto* weights = reinterpret_cast<float*>(memory.state);
  constexpr int weight_stride = chunk_tokens + 1;
  {
    ScoreTile products;
    products.clear();
    products.template add_product<keys, false, true>(memory.k, stride, memory.k, stride);
    sums.solved.for_each_pair([&](int i, int j, float x, float y) {
      weights[i * weight_stride + j] = x;
      weights[i * weight_stride + j + 1] = y;
    });
    products.for_each_pair([&](int i, int j, float x, float y) {
      weights[i * weight_stride + j] *= x;
      weights[i * weight_stride + j + 1] *= y;
    });
  }
  __syncthreads();
  sums.read.template add_product<chunk_tokens, false, false>(h, slice_stride, memory.k, stride);
  row_products(sums.read, memory.q, stride, memory.row_sums[0]);
  write_gradient<keys>(in, place, sums.read, in.grad_q, in.grad_q_groups);
  row_products(sums.written, memory.k, stride, memory.row_sums[1]);
  row_products(sums.erased, memory.k, stride, memory.row_sums[2]);
  sums.written.for_each_pair([&](int t, int, float& x, float& y) {
    const float f = to_end(t);
    x *= f;
    y *= f;
  });
  sums.erased.for_each_pair([&](int t, int, float& x, float& y) {
    const float factor = -betas[t] * faded(b[t]);
    x *= factor;
    y *= factor;
  });
  KeyTile<keys>& part = sums.read;
  const auto add_part = [&] {
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < n; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums.written.x[i][j][e] += part.x[i][j][e];
  };
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums.written.x[i][j][e] += sums.erased.x[i][j][e];
  part.clear();
  part.template add_product<chunk_tokens, false, false>(
      grad_products, slice_stride, memory.k, stride);
  row_products(part, memory.k, stride, memory.row_sums[3]);
  add_part();
  part.clear();
  part.template add_product<chunk_tokens, true, false>(
      grad_products, slice_stride, memory.k, stride);
  part.template add_product<chunk_tokens, true, false>(h, slice_stride, memory.q, stride);
  row_products(part, memory.k, stride, memory.row_sums[4]);
  add_part();
  write_gradient<keys>(in, place, sums.written, in.grad_k, in.grad_k_groups);
  __syncthreads();
  if (thread < chunk_tokens) {
    const auto total = [&](int which) {
      return row_total<chunk_tokens, keys>(memory.row_sums[which], thread);
    };
    const float erased = faded(b[thread]) * total(2);
    memory.grad_sums[thread] = total(0) - betas[thread] * erased + total(3) - total(4);
    memory.into_state[thread] = to_end(thread) * total(1);
    float sum = memory.write_products[thread] - erased;
    for (int j = 0; j < thread; ++j) sum += weights[thread * weight_stride + j];
    memory.own_betas[thread] = sum;
  }
}

/// A decay for each channel: dA = N for i >= j,
///     dQ_i = s sum_{j <= i} dA_ij k_j exp(b_i - b_j) + s exp(b_i) Y_i
///     dK_j = s sum_{i >= j} dA_ij q_i exp(b_i - b_j) + f_j W_j
///     db = q dQ - k (dK's first part),  k kB = k f W
/// with the two factors, or by differences where they do not do.
template <int keys>
__device__ __forceinline__ void finish(const LinearAttentionArguments& in,
                                       const ChunkPlace& place,
                                       GradientMemory<Recurrence::channel_decay, keys>& memory,
                                       SliceSums<Recurrence::channel_decay, keys>& sums) {
  constexpr int stride = padded(keys), last = chunk_tokens - 1;
  const int thread = static_cast<int>(threadIdx.x);
  float* b = memory.sums;
  bfloat16* grad_scores = memory.grad_output;
  const bool differences = needs_differences<keys>(b);
  sums.scores.for_each_pair([&](int i, int j, float x, float y) {
    word_at(grad_scores + i * slice_stride + j) = pack(i >= j ? x : 0, i > j ? y : 0);
  });
  sums.read.for_each_pair([&](int t, int c, float& x, float& y) {
    x *= in.scale * faded(b[t * keys + c]);
    y *= in.scale * faded(b[t * keys + c + 1]);
  });
  sums.written.for_each_pair([&](int t, int c, float& x, float& y) {
    x *= faded(b[last * keys + c] - b[t * keys + c]);
    y *= faded(b[last * keys + c + 1] - b[t * keys + c + 1]);
  });
  KeyTile<keys> through_q, through_k;
  through_q.clear();
  through_k.clear();
  __syncthreads();
  if (differences) {
    const auto part = [&](int t, int c, bool of_q) {
      float sum = 0;
      const int begin = of_q ? 0 : t, end = of_q ? t + 1 : chunk_tokens;
      for (int u = begin; u < end; ++u) {
        const int i = of_q ? t : u, j = of_q ? u : t;
        sum += to_float(grad_scores[i * slice_stride + j]) *
               to_float((of_q ? memory.k : memory.q)[u * stride + c]) *
               faded(b[i * keys + c] - b[j * keys + c]);
      }
      return in.scale * sum;
    };
    through_q.for_each_pair([&](int t, int c, float& x, float& y) {
      x = part(t, c, true);
      y = part(t, c + 1, true);
    });
    through_k.for_each_pair([&](int t, int c, float& x, float& y) {
      x = part(t, c, false);
      y = part(t, c + 1, false);
    });
  } else {
    for (int i = thread; i < chunk_tokens * keys / 8; i += tile_threads) {
      const int t = i / (keys / 8), c = i % (keys / 8) * 8, at = t * stride + c;
      Eight::from(memory.q + at)
          .times([&](int j) { return in.scale * factor<keys>(b, t, c + j, 1); })
          .write(memory.state + at);
      Eight::from(memory.k + at)
          .times([&](int j) { return factor<keys>(b, t, c + j, -1); })
          .write(memory.grad_state + at);
    }
    __syncthreads();
    through_q.template add_product<chunk_tokens, false, false>(
        grad_scores, slice_stride, memory.grad_state, stride);
    through_k.template add_product<chunk_tokens, true, false>(
        grad_scores, slice_stride, memory.state, stride);
    through_q.for_each_pair([&](int t, int c, float& x, float& y) {
      x *= in.scale * factor<keys>(b, t, c, 1);
      y *= in.scale * factor<keys>(b, t, c + 1, 1);
    });
    through_k.for_each_pair([&](int t, int c, float& x, float& y) {
      x *= factor<keys>(b, t, c, -1);
      y *= factor<keys>(b, t, c + 1, -1);
    });
  }
  __syncthreads();  // b, S and dS' have been read
  // db and k kB, [64, keys] in float32: where b was, and where S and dS' were.
  float* grad_sums = b;
  auto* into_state = reinterpret_cast<float*>(memory.state);
  static_assert(sizeof memory.state + sizeof memory.grad_state >=
                sizeof(float) * chunk_tokens * keys);
#pragma unroll
  for (int i = 0; i < KeyTile<keys>::m; ++i)
#pragma unroll
    for (int j = 0; j < KeyTile<keys>::n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums.read.x[i][j][e] += through_q.x[i][j][e];
  write_gradient<keys>(in, place, sums.read, in.grad_q, in.grad_q_groups);
  const auto values = [&](const bfloat16* matrix, int t, int c) {
    return word_at(matrix + t * stride + c);
  };
  sums.read.for_each_pair([&](int t, int c, float x, float y) {
    const unsigned q = values(memory.q, t, c);
    grad_sums[t * keys + c] = low_half(q) * x;
    grad_sums[t * keys + c + 1] = high_half(q) * y;
  });
  through_k.for_each_pair([&](int t, int c, float x, float y) {
    const unsigned k = values(memory.k, t, c);
    grad_sums[t * keys + c] -= low_half(k) * x;
    grad_sums[t * keys + c + 1] -= high_half(k) * y;
  });
  sums.written.for_each_pair([&](int t, int c, float x, float y) {
    const unsigned k = values(memory.k, t, c);
    into_state[t * keys + c] = low_half(k) * x;
    into_state[t * keys + c + 1] = high_half(k) * y;
  });
#pragma unroll
  for (int i = 0; i < KeyTile<keys>::m; ++i)
#pragma unroll
    for (int j = 0; j < KeyTile<keys>::n; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums.written.x[i][j][e] += through_k.x[i][j][e];
  write_gradient<keys>(in, place, sums.written, in.grad_k, in.grad_k_groups);
  __syncthreads();
  if (thread < keys) {
    float sum = 0;
#pragma unroll 8
    for (int t = last; t >= 0; --t) {
      sum += grad_sums[t * keys + thread];
      grad_sums[t * keys + thread] = sum;
    }
  } else if (thread < 2 * keys) {
    const int channel = thread - keys;
    float sum = memory.state_products[channel];
#pragma unroll 8
    for (int t = 0; t < chunk_tokens; ++t) {
      const float own = into_state[t * keys + channel];
      into_state[t * keys + channel] = sum;
      sum += own;
    }
  }
  __syncthreads();
  for (int i = thread; i < place.tokens * keys; i += tile_threads)
    in.grad_log_decay[place.number(in, i / keys) * keys + i % keys] = grad_sums[i] + into_state[i];
}

/// dq, dk, dlog_decay, dbeta of a chunk; formulas above. cuda_scalar_gradient.cuh has those of
/// scalar decay.
/// Grid: chunks, heads, rows. Block: 256 threads. Shared memory: a GradientMemory, at most 127 KiB.
/// Reads S and dS', 4 K V bytes of a chunk, more than all else; q, k, dq, dk 8 K of a token and
/// head (8 K more for channels' decays, float32 in and out), v and dO 4 V (with U and dR 8 V).
/// Multiply-adds of a token and head: 2 K V + 64 V + 128 K (delta rule 3 K V + 128 V + 320 K).
template <Recurrence kind, int keys>
__global__ void __launch_bounds__(tile_threads, 1) gradient_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<GradientMemory<kind, keys>*>(shared_memory());
  const ChunkPlace place(in, blockIdx.z, blockIdx.y, blockIdx.x);
  copy_rows<chunk_tokens, keys>(memory.q, place.rows(in.q), in.q.token, place.tokens);
  copy_rows<chunk_tokens, keys>(memory.k, place.rows(in.k), in.k.token, place.tokens);
  if constexpr (kind == Recurrence::channel_decay)
    sum_channel_decays<keys>(in, place, memory.sums);
  else
    sum_decays(in, place, memory.sums, memory.betas);
  prefetch_slices<kind, keys>(in, place);
  SliceSums<kind, keys> sums;
  sum_slices<kind, keys>(in, place, memory, sums);
  __syncthreads();
  finish<keys>(in, place, memory, sums);
  if constexpr (kind == Recurrence::delta_rule) {
    __syncthreads();
    write_token_gradients<kind, keys>(in, place, memory);
  }
}

}  // namespace forge::ops::cuda
