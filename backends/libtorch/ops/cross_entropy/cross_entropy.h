#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

constexpr int64_t ignored_target = -100;

struct CrossEntropyOptions {
  enum class ZLoss {
    none,         ///< mean of n over scored targets, n = logsumexp(logits) - logits[target]
    palm,         ///< mean of n + c * logsumexp^2 over scored targets (PaLM, Chowdhery et al. 2022)
    lingua_code,  ///< sum of n + c * n^2 over scored targets, divided by all targets, as the
                  ///< released lingua recipes compute it
  };
  ZLoss z_loss = ZLoss::none;
  double coefficient = 1e-4;
  /// Targets of the whole batch, int32, for a call with one micro-batch of it. The sum is divided
  /// by the scored targets of the whole batch, so losses and gradients of micro-batches add up.
  /// Undefined: the call has the whole batch.
  at::Tensor batch_targets = {};

  const at::Tensor& counted(const at::Tensor& targets) const {
    return batch_targets.defined() ? batch_targets : targets;
  }
};

/// Next-token loss of logits [N, V] and int32 targets [N] by plain Torch operations, on any device
/// and dtype; a target of -100 is not scored. Returns a scalar in the logits' dtype (float32 at
/// least); 0 if no target is scored. Differentiable. Training uses linear_cross_entropy.
at::Tensor cross_entropy_reference(const at::Tensor& logits,
                                   const at::Tensor& targets,
                                   const CrossEntropyOptions& options = {});

/// n of each target, 0 where it is not scored: [N], float32 at least, without gradient: for
/// evaluation.
at::Tensor negative_log_likelihoods(const at::Tensor& logits, const at::Tensor& targets);

/// Throws c10::Error unless targets are int32 [rows] of ignored_target and ids below `vocabulary`.
/// On a GPU the ids are not read.
void check_targets(const at::Tensor& targets, int64_t rows, int64_t vocabulary);

}  // namespace forge::ops
