#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// Log decays of gated linear attention (Yang et al. 2023): log(sigmoid(x + bias)) / normalizer.
///   x [..., C], bias [C] of x's type or float32; the result [..., C] in bias's type
/// Differentiable in x and bias. The backward pass keeps x alone. On a GPU one kernel each way, for
/// C a multiple of 8.
at::Tensor log_decay(const at::Tensor& x, const at::Tensor& bias, double normalizer);
at::Tensor log_decay_reference(const at::Tensor& x, const at::Tensor& bias, double normalizer);

/// Of rows x [N, C], contiguous: the result [N, C], and the gradients of x and bias.
FORGE_CUDA_ONLY void log_decay_forward_cuda(const at::Tensor& x,
                                            const at::Tensor& bias,
                                            double normalizer,
                                            at::Tensor& log_decay);
FORGE_CUDA_ONLY void log_decay_backward_cuda(const at::Tensor& x,
                                             const at::Tensor& bias,
                                             double normalizer,
                                             const at::Tensor& grad_log_decay,
                                             at::Tensor& grad_x,
                                             at::Tensor& grad_bias);

/// What each head does with a token, [B, T, H] in the type of a_log.
struct HeadGates {
  at::Tensor log_decay;
  at::Tensor beta;  ///< how strongly the token writes
};

/// The logits that they come from.
struct HeadGateLogits {
  at::Tensor step;              ///< [B, T, H]
  at::Tensor write;             ///< [B, T, H], or undefined
  at::Tensor a_log, step_bias;  ///< [H] of their type or float32
};

/// Of Mamba-2 (Dao & Gu 2024) and gated delta networks (Yang et al. 2024):
///     log decay = -exp(a_log) s,  s = softplus(step + step_bias)
///     beta = sigmoid(write), or s where there is no `write`
/// Differentiable in all tensors. The backward pass keeps the inputs. On a GPU one kernel each way.
HeadGates head_gates(const HeadGateLogits& logits);
HeadGates head_gates_reference(const HeadGateLogits& logits);

/// Logits of rows [N, H]; they may be parts of wider rows. All else is contiguous.
FORGE_CUDA_ONLY void head_gates_forward_cuda(const HeadGateLogits& logits, HeadGates& gates);
/// Writes gradients, shaped as the logits, from those of the gates.
FORGE_CUDA_ONLY void head_gates_backward_cuda(const HeadGateLogits& logits,
                                              const HeadGates& grad_gates,
                                              HeadGateLogits& grads);

}  // namespace forge::ops
