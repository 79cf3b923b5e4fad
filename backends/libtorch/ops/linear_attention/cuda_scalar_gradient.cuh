#pragma once

#include "backends/libtorch/ops/linear_attention/cuda_gradient.cuh"

/// The gradients of a chunk's q, k, log_decay and beta where one number a token decays the state,
/// of a group of heads that share q and k, or of one head. Symbols as in cuda_gradient.cuh, with
/// D_ij = exp(b_i - b_j) for i >= j, G = s Q K^T and X = N * D of each head:
///     dG = sum over heads of X_ij beta_j
///     dQ = sum over heads of s e Y + s dG K,  dK = sum over heads of f beta W + s dG^T Q
///     dbeta_j = sum_i X_ij G_ij + f k_j.W_j
///     db_i = s e q_i.Y_i + sum_j X_ij beta_j G_ij - beta_i sum_j X_ji G_ji,  k.kB = f beta k.W
namespace forge::ops::cuda {

template <int keys>
struct ScalarGradientMemory {
  /// A slice of S, dS', dO and V.
  struct Operands {
    bfloat16 state[keys * slice_stride], grad_state[keys * slice_stride];
    bfloat16 grad_output[chunk_tokens * slice_stride], values[chunk_tokens * slice_stride];
  };
  /// Sums of each warp: q.Y, k.W, rows and columns of X * G, <S, dS'>.
  struct TokenSums {
    float read[KeyTile<keys>::warp_columns * chunk_tokens];
    float written[KeyTile<keys>::warp_columns * chunk_tokens];
    float rows[ScoreTile::warp_columns * chunk_tokens];
    float columns[ScoreTile::warp_rows * chunk_tokens];
    float state[tile_warps];
  };
  bfloat16 q[chunk_tokens * padded(keys)], k[chunk_tokens * padded(keys)];
  Operands operands[2];    ///< of a slice and the next
  TokenSums of_tokens[2];  ///< of a head and the next
  float sums[most_heads_of_block][chunk_tokens], betas[most_heads_of_block][chunk_tokens];
};

/// Sums over the heads of a block; G.
template <int keys>
struct GroupSums {
  KeyTile<keys> grad_q, grad_k;
  ScoreTile grad_products, products;
};
/// Sums over the slices of a head.
template <int keys>
struct HeadSums {
  KeyTile<keys> read, written;  ///< Y, W
  ScoreTile scores;             ///< N
  float state = 0;              ///< the thread's part of <S, dS'>
};

/// b and beta of all heads of the block, each by a warp; the caller sets the barrier behind it.
template <int keys>
__device__ __forceinline__ void sum_decays_of_heads(const LinearAttentionArguments& in,
                                                    const ChunkPlace& chunk,
                                                    int heads,
                                                    ScalarGradientMemory<keys>& memory) {
  const int lane = static_cast<int>(threadIdx.x) % 32, t = 2 * lane;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < heads; i += tile_warps) {
    const ChunkPlace place(in, chunk.row, chunk.head + i, chunk.index);
    const TwoFloats betas = read_betas(in, place, lane);
    memory.betas[i][t] = betas.first;
    memory.betas[i][t + 1] = betas.second;
    const TwoFloats own = sum_decays_in_warp(read_decays(in, place, lane), lane);
    memory.sums[i][t] = own.first;
    memory.sums[i][t + 1] = own.second;
  }
}

template <int keys>
__device__ __forceinline__ void copy_operands(
    const LinearAttentionArguments& in,
    const ChunkPlace& place,
    const Slice& slice,
    typename ScalarGradientMemory<keys>::Operands& operands) {
  const int64_t state = place.chunk_index * keys * in.values + slice.begin;
  const auto copy_state = [&](bfloat16* to, const bfloat16* from) {
    copy_rows<keys, slice_columns>(to, from + state, in.values, keys, slice.columns);
  };
  const auto copy_values = [&](bfloat16* to, const bfloat16* from, int64_t stride) {
    copy_rows<chunk_tokens, slice_columns>(to, from, stride, place.tokens, slice.columns);
  };
  copy_state(operands.state, in.states);
  copy_state(operands.grad_state, in.grad_states);
  copy_values(operands.grad_output,
              in.grad_output + place.number(in, 0) * in.values + slice.begin,
              in.heads * in.values);
  copy_values(operands.values, place.rows(in.v) + slice.begin, in.v.token);
}

template <int keys>
__device__ __forceinline__ void add_slice(
    const typename ScalarGradientMemory<keys>::Operands& operands, HeadSums<keys>& sums) {
  const auto add = [&](auto& tile, const bfloat16* a, const bfloat16* b) {
    tile.template add_product<slice_columns, false, true>(a, slice_stride, b, slice_stride);
  };
  add(sums.read, operands.grad_output, operands.state);
  add(sums.written, operands.values, operands.grad_state);
  add(sums.scores, operands.grad_output, operands.values);
  constexpr int parts = tile_threads / keys, columns = slice_columns / parts;
  const int thread = static_cast<int>(threadIdx.x);
  const int at = thread / parts * slice_stride + thread % parts * columns;
  sums.state += dot<columns>(operands.state + at, operands.grad_state + at);
}

/// Adds a head's sums to those of the group and leaves those of its tokens.
template <int keys>
__device__ __forceinline__ void add_head(const LinearAttentionArguments& in,
                                         const ScalarGradientMemory<keys>& memory,
                                         int index,
                                         HeadSums<keys>& sums,
                                         GroupSums<keys>& group,
                                         typename ScalarGradientMemory<keys>::TokenSums& tokens) {
  constexpr int stride = padded(keys), last = chunk_tokens - 1;
  const float *b = memory.sums[index], *betas = memory.betas[index];
  sums.scores.for_each_pair(group.grad_products,
                            [&](int i, int j, float& x, float& y, float& of_x, float& of_y) {
                              x = i >= j ? x * faded(b[i] - b[j]) : 0;
                              y = i > j ? y * faded(b[i] - b[j + 1]) : 0;
                              of_x += x * betas[j];
                              of_y += y * betas[j + 1];
                            });
  sums.scores.for_each_pair(group.products,
                            [&](int i, int j, float& x, float& y, float of_x, float of_y) {
                              x = i >= j ? x * of_x : 0;
                              y = i > j ? y * of_y : 0;
                            });
  column_sums(sums.scores, tokens.columns);
  row_sums(sums.scores, betas, tokens.rows);
  row_products(sums.read, memory.q, stride, tokens.read);
  group.grad_q.for_each_pair(sums.read, [&](int t, int, float& x, float& y, float u, float v) {
    const float e = in.scale * faded(b[t]);
    x += e * u;
    y += e * v;
  });
  row_products(sums.written, memory.k, stride, tokens.written);
  group.grad_k.for_each_pair(sums.written, [&](int t, int, float& x, float& y, float u, float v) {
    const float f = faded(b[last] - b[t]) * betas[t];
    x += f * u;
    y += f * v;
  });
  const float state = sum_of_parts<32>(sums.state);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % 32 == 0) tokens.state[thread / 32] = state;
}

/// dlg and dbeta of a head, whose TokenSums lie behind a barrier, by one warp: a lane has tokens
/// 2 l and 2 l + 1.
template <int keys>
__device__ __forceinline__ void write_token_gradients(
    const LinearAttentionArguments& in,
    const ChunkPlace& place,
    const float* b,
    const float* betas,
    const typename ScalarGradientMemory<keys>::TokenSums& tokens) {
  constexpr int last = chunk_tokens - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sums[2], into_state[2], grad_betas[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int t = 2 * lane + i;
    const float read = row_total<chunk_tokens, keys>(tokens.read, t);
    const float written =
        faded(b[last] - b[t]) * row_total<chunk_tokens, keys>(tokens.written, t);
    const float row = row_total<chunk_tokens, chunk_tokens>(tokens.rows, t);
    const float column = column_total<chunk_tokens, chunk_tokens>(tokens.columns, t);
    sums[i] = in.scale * faded(b[t]) * read + (row - betas[t] * column);
    into_state[i] = written * betas[t];
    grad_betas[i] = column + written;
  }
  float behind = sums[0] + sums[1], before = into_state[0] + into_state[1];
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const float next = __shfl_down_sync(0xffffffffu, behind, distance);
    const float previous = __shfl_up_sync(0xffffffffu, before, distance);
    if (lane + distance < 32) behind += next;
    if (lane >= distance) before += previous;
  }
  behind = __shfl_down_sync(0xffffffffu, behind, 1);
  before = __shfl_up_sync(0xffffffffu, before, 1);
  if (lane == 31) behind = 0;
  if (lane == 0) before = 0;
  float state = 0;
#pragma unroll
  for (int warp = 0; warp < tile_warps; ++warp) state += tokens.state[warp];
  state *= faded(b[last]);
  const auto write = [&](int t, float decay, float beta) {
    if (t >= place.tokens) return;
    in.grad_log_decay[place.number(in, t)] = decay;
    if (in.grad_beta) in.grad_beta[place.number(in, t)] = beta;
  };
  const int t = 2 * lane;
  write(t, behind + sums[1] + sums[0] + before + state, grad_betas[0]);
  write(t + 1, behind + sums[1] + (before + into_state[0]) + state, grad_betas[1]);
}

/// dQ and dK of the group, behind a barrier; `scratch` is [64, 64] in shared memory.
template <int keys>
__device__ __forceinline__ void write_group(const LinearAttentionArguments& in,
                                            const ChunkPlace& place,
                                            const ScalarGradientMemory<keys>& memory,
                                            GroupSums<keys>& group,
                                            bfloat16* scratch) {
  constexpr int stride = padded(keys);
  group.grad_products.for_each_pair([&](int i, int j, float x, float y) {
    word_at(scratch + i * slice_stride + j) = pack(in.scale * x, in.scale * y);
  });
  __syncthreads();
  group.grad_q.template add_product<chunk_tokens, false, false>(
      scratch, slice_stride, memory.k, stride);
  write_gradient<keys>(in, place, group.grad_q, in.grad_q, in.grad_q_groups);
  group.grad_k.template add_product<chunk_tokens, true, false>(
      scratch, slice_stride, memory.q, stride);
  write_gradient<keys>(in, place, group.grad_k, in.grad_k, in.grad_k_groups);
}

/// A block takes the heads of a group one after the other, and of each a slice after another; the
/// next one is copied meanwhile, and a warp writes what the head before has of its tokens.
/// Grid: chunks, groups of heads, rows. Block: 256 threads, one a multiprocessor. Shared memory: a
/// ScalarGradientMemory, at most 166 KiB.
/// Reads S and dS', 4 K V bytes of a chunk and head, v and dO 4 V of a token and head; q, k, dq, dk
/// 8 K (12 K of several groups) and half of 256 of G of a token and group. Multiply-adds of a token
/// and head: 2 K V + 64 V; of a token and group 128 K.
template <int keys>
__global__ void __launch_bounds__(tile_threads, 1)
    scalar_gradient_kernel(LinearAttentionArguments in) {
  auto& memory = *reinterpret_cast<ScalarGradientMemory<keys>*>(shared_memory());
  const int first = static_cast<int>(blockIdx.y) * in.heads_of_block;
  const int left = static_cast<int>(in.heads) - first;
  const int heads = left < in.heads_of_block ? left : in.heads_of_block;
  const int slices = static_cast<int>((in.values + slice_columns - 1) / slice_columns);
  const auto head_place = [&](int index) {
    return ChunkPlace(in, blockIdx.z, first + index, blockIdx.x);
  };
  const auto copy = [&](int step) {
    copy_operands<keys>(in,
                        head_place(step / slices),
                        Slice(in, step % slices),
                        memory.operands[step % 2]);
  };
  const auto write_tokens = [&](int index) {
    if (static_cast<int>(threadIdx.x) / 32 == index % tile_warps)
      write_token_gradients<keys>(in,
                                  head_place(index),
                                  memory.sums[index],
                                  memory.betas[index],
                                  memory.of_tokens[index % 2]);
  };
  const ChunkPlace place = head_place(0);
  copy_rows<chunk_tokens, keys>(memory.q, place.rows(in.q), in.q.token, place.tokens);
  copy_rows<chunk_tokens, keys>(memory.k, place.rows(in.k), in.k.token, place.tokens);
  copy(0);
  sum_decays_of_heads(in, place, heads, memory);
  GroupSums<keys> group;
  group.grad_q.clear();
  group.grad_k.clear();
  group.grad_products.clear();
  read_products(in, place, group.products);
  for (int index = 0; index < heads; ++index) {
    HeadSums<keys> sums;
    sums.read.clear();
    sums.written.clear();
    sums.scores.clear();
    for (int slice = 0; slice < slices; ++slice) {
      const int step = index * slices + slice;
      wait_for_copies();
      __syncthreads();  // and what the step before has read is free
      if (step + 1 < heads * slices) copy(step + 1);
      if (slice == 0 && index > 0) write_tokens(index - 1);
      add_slice<keys>(memory.operands[step % 2], sums);
    }
    add_head<keys>(in, memory, index, sums, group, memory.of_tokens[index % 2]);
  }
  __syncthreads();
  write_tokens(heads - 1);
  write_group<keys>(in, place, memory, group, memory.operands[0].grad_output);
}

}  // namespace forge::ops::cuda
