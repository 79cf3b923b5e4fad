#pragma once

#include <cstdint>

#ifndef FORGE_CUDA_EMULATION
#include "backends/libtorch/ops/common/cuda.h"
#endif

/// Linear attention in chunks of 64 tokens on tensor cores, see cuda_kernels.cuh.
namespace forge::ops::cuda {

/// [B, T, H, columns] with contiguous rows of 16-byte words; strides in elements.
struct TokenRows {
  const bfloat16* data;
  int64_t row, token, head;  ///< from one batch row, token, head to the next; head 0: shared
};

/// What fades the state, and how a token writes to it.
enum class Recurrence { scalar_decay, delta_rule, channel_decay };

/// Heads with one q and k whose gradients a block may add up.
constexpr int most_heads_of_block = 32;

/// Inputs, results and scratch memory; NC = ceil(T / 64) chunks. Contiguous but for the token rows.
struct LinearAttentionArguments {
  Recurrence kind;
  int64_t batch, length, heads, keys, values;  ///< keys 32, 64 or 128; values a multiple of 16
  float scale;
  TokenRows q, k, v;
  const float* log_decay;  ///< [B, T, H], or [B, T, H, K]
  const float* beta;       ///< [B, T, H]; null: 1
  const float* state;      ///< [B, H, K, V]; null: zeros

  bfloat16* output;    ///< [B, T, H, V]; null in the backward pass
  float* final_state;  ///< [B, H, K, V], or null

  // Scratch. Those of the delta rule alone are null for the others.
  float* products;  ///< of scalar decay alone [B, 1 or H, NC, 64, 64]: s Q K^T, as q and k
  bfloat16 *scores, *inverse;           ///< [B, H, NC, 64, 64]: P or A, of scalar decay null; Tm
  bfloat16 *q_begin, *k_end, *k_begin;  ///< [B, H, NC, 64, K]: Qb, Ke, Kb; of scalar decay null
  float* whole;                         ///< [B, H, NC, K]: exp b_n; of scalar decay null

  // Of the backward pass alone.
  const bfloat16* grad_output;     ///< [B, T, H, V]
  const float* grad_final_state;   ///< [B, H, K, V]; null: zeros
  bfloat16 *states, *grad_states;  ///< scratch [B, H, NC, K, V]: S before, dS' behind each chunk
  bfloat16 *writes, *grad_writes;  ///< scratch of the delta rule [B, T, H, V]: U, dR
  /// Heads with one q and k whose gradients a block adds up, G groups of them, at most
  /// most_heads_of_block; 1: H groups. More than 1 of scalar decay alone.
  int heads_of_block;
  bfloat16 *grad_q, *grad_k;             ///< [B, T, G, K], or null
  float *grad_q_groups, *grad_k_groups;  ///< the same in place of null: sums to add up
  bfloat16* grad_v;                      ///< [B, T, H, V]
  float* grad_log_decay;                 ///< as log_decay
  float* grad_beta;                      ///< as beta, or null
  float* grad_state;                     ///< as state, or null
};

#ifndef FORGE_CUDA_EMULATION
/// Writes output and, where it is given, final_state. Uses the scratch memory.
void linear_attention_forward(const LinearAttentionArguments& arguments, cudaStream_t stream);

/// Writes the gradients of the inputs alone from grad_output and grad_final_state; computes the
/// scratch again.
void linear_attention_backward(const LinearAttentionArguments& arguments, cudaStream_t stream);
#endif

}  // namespace forge::ops::cuda
