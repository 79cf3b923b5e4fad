#pragma once

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/recomputation.h"

namespace forge::ops {

/// What linear attention reads, or gradients of it.
struct LinearAttentionInputs {
  at::Tensor q, k;       ///< [B, T, H, K], or [B, T, 1, K] for all heads alike
  at::Tensor v;          ///< [B, T, H, V]
  at::Tensor log_decay;  ///< at most 0: [B, T, H, K], or [B, T, H] for a head as a whole
  at::Tensor beta;       ///< [B, T, H]: how strongly a token writes; undefined: 1
  at::Tensor state;      ///< [B, H, K, V] before the first token; undefined: zeros
};

struct LinearAttentionOptions {
  double scale = 1;
  /// A token writes what its key does not read yet: v - S^T k in place of v.
  bool delta_rule = false;
};

struct LinearAttention {
  at::Tensor output;  ///< [B, T, H, V], contiguous
  at::Tensor state;   ///< [B, H, K, V] behind the last token, contiguous
};

/// Attention without softmax: a head keeps one matrix S [K, V], which each token fades, writes to
/// and reads. With g = exp(log_decay), a number for each row of S or one for all:
///     S_t = g_t S_{t-1} + beta_t k_t v_t^T
///     S_t = g_t S_{t-1} + beta_t k_t (v_t - g_t S_{t-1}^T k_t)^T      with the delta rule
///     o_t = scale S_t^T q_t
/// Mamba-2 (Dao & Gu 2024): q, k, v and beta are C, B, x and dt. Gated DeltaNet (Yang et al. 2024):
/// k of length 1 at most, so that the writes of a chunk stay bounded. GLA: Yang et al. 2023.
///
/// Inputs of one type: float32, float64 or bfloat16; log_decay, beta and state of that type or
/// float32. Last dimension contiguous or made so, any stride elsewhere. The state is float32 beside
/// bfloat16. A decay for each row goes with neither beta nor the delta rule. The delta rule needs
/// beta and a q and k for each head. Any T, 0 included. Differentiable in all inputs, from both
/// results.
///
/// On a CPU chunks of 64 tokens are matrix products, and only S goes from chunk to chunk. The
/// backward pass keeps the inputs alone and computes the states again. No decision depends on the
/// data but for which of two exact forms a chunk with a decay for each row takes, see
/// most_decay_of_one_reference. On a GPU the same in bfloat16, for 32, 64 or 128 keys and a
/// multiple of 16 values, and linear_attention_composed otherwise. Throws c10::Error naming a wrong
/// shape or type.
LinearAttention linear_attention(const LinearAttentionInputs& inputs,
                                 const LinearAttentionOptions& options);

/// The same of q, k, v, log_decay and beta that `again` computes as they are here: the backward
/// pass keeps its sources in place of them.
LinearAttention recomputed_linear_attention(const LinearAttentionInputs& inputs,
                                            const LinearAttentionOptions& options,
                                            const Recomputation& again);

/// The same token by token with plain Torch operations, on any device and in any type.
LinearAttention linear_attention_reference(const LinearAttentionInputs& inputs,
                                           const LinearAttentionOptions& options);

/// The chunk forms of plain Torch operations: what other devices run. With a decay for each row of
/// S 16 K numbers a token and head are kept for the backward pass.
LinearAttention linear_attention_composed(const LinearAttentionInputs& inputs,
                                          const LinearAttentionOptions& options);

/// Whether the sums of log_decay over a chunk of tokens differ by more than this in a channel. Up
/// to it exp(b_i - b_j) is the product of two factors that float32 holds, exp(b_i - m) and exp(m -
/// b_j) with m in the middle. Beyond it sub-blocks of tokens have a reference each.
constexpr double most_decay_of_one_reference = 150;

/// On a CPU: how many chunks of all rows and heads take sub-blocks. log_decay [B, T, H, K].
int64_t chunks_beyond_one_reference(const at::Tensor& log_decay);

/// On CPU tensors of one type, float32 or float64, each with a contiguous last dimension;
/// log_decay, beta and state contiguous. `results.output` is written, and `results.state` where it
/// is defined.
void linear_attention_forward_cpu(const LinearAttentionInputs& inputs,
                                  const LinearAttentionOptions& options,
                                  LinearAttention& results);

/// Writes into the tensors of `gradients`, contiguous and shaped as the inputs, those of
/// sum(output * upstream.output) + sum(state * upstream.state), the second where it is defined.
/// Those of beta and state where they are defined. Sums run in an order that does not depend on the
/// number of threads.
void linear_attention_backward_cpu(const LinearAttentionInputs& inputs,
                                   const LinearAttentionOptions& options,
                                   const LinearAttention& upstream,
                                   LinearAttentionInputs& gradients);

/// Whether the GPU's kernels compute this.
bool cuda_linear_attention_supports(const LinearAttentionInputs& inputs);

/// On a GPU, where cuda_linear_attention_supports. q, k and v of bfloat16, the rest of float32 and
/// contiguous. Otherwise as their CPU counterparts: deterministic too, and without a decision of
/// the CPU that depends on the data, so that a CUDA graph can hold them.
FORGE_CUDA_ONLY void linear_attention_forward_cuda(const LinearAttentionInputs& inputs,
                                                   const LinearAttentionOptions& options,
                                                   LinearAttention& results);
FORGE_CUDA_ONLY void linear_attention_backward_cuda(const LinearAttentionInputs& inputs,
                                                    const LinearAttentionOptions& options,
                                                    const LinearAttention& upstream,
                                                    LinearAttentionInputs& gradients);

}  // namespace forge::ops
