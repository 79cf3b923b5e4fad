#pragma once

#include <cstdint>

namespace forge::tests {

/// Linear attention by the CUDA kernels on the emulated GPU (cuda_emulation.h). bfloat16 as its
/// bits; everything contiguous. Null: not there, or not asked for.
struct EmulatedLinearAttention {
  enum Kind { scalar_decay, delta_rule, channel_decay } kind;
  int64_t batch, length, heads, key_heads, keys, values;
  float scale;
  const uint16_t *q, *k;  ///< [B, T, 1 or H, K]
  const uint16_t* v;      ///< [B, T, H, V]
  const float *log_decay, *beta, *state;
  uint16_t* output;
  float* final_state;
  /// Of the backward pass.
  const uint16_t* grad_output;
  const float* grad_final_state;
  float *grad_q, *grad_k;  ///< [B, T, G, K], of each group of heads
  int heads_of_block;      ///< heads of a group, more than 1 only of shared q and k
  uint16_t *rounded_grad_q, *rounded_grad_k;  ///< [B, T, 1, K] in place of them where G is 1
  uint16_t* grad_v;
  float *grad_log_decay, *grad_beta, *grad_state;
  /// Threads change in the other order. Results must not.
  bool backwards = false;
};

void run_emulated_forward(const EmulatedLinearAttention& call);
void run_emulated_backward(const EmulatedLinearAttention& call);

}  // namespace forge::tests
