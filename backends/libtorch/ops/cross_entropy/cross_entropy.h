#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

constexpr int64_t ignored_target = -100;

struct CrossEntropyOptions {
  enum class ZLoss {
    none,         ///< mean of n over kept targets, n = logsumexp(logits) - logits[target]
    palm,         ///< mean of n + c * logsumexp^2 over kept targets (PaLM, Chowdhery et al. 2022)
    lingua_code,  ///< sum of n + c * n^2 over kept targets, divided by all targets, as the released
                  ///< lingua recipes compute it
  };
  ZLoss z_loss = ZLoss::none;
  double coefficient = 1e-4;
  /// int32 targets of the whole batch of which those of a call are a part: the sum over the part is
  /// divided by what is scored of the whole, so that the parts' losses and gradients add up to the
  /// whole's. Undefined: the targets of the call are all.
  at::Tensor batch_targets = {};

  const at::Tensor& counted(const at::Tensor& targets) const {
    return batch_targets.defined() ? batch_targets : targets;
  }
};

/// Next-token loss of logits [N, V] and int32 targets [N]; a target of -100 is not scored. Returns
/// a scalar in the logits' dtype (float32 at least); NaN where no target is kept. Differentiable.
at::Tensor cross_entropy(const at::Tensor& logits,
                         const at::Tensor& targets,
                         const CrossEntropyOptions& options = {});

at::Tensor cross_entropy_reference(const at::Tensor& logits,
                                   const at::Tensor& targets,
                                   const CrossEntropyOptions& options = {});

/// Sum of n over the kept targets, a float64 scalar without gradient: for evaluation.
at::Tensor negative_log_likelihood_sum(const at::Tensor& logits, const at::Tensor& targets);

/// Throws c10::Error where targets are not int32 [rows] of ignored_target and numbers below
/// `vocabulary`; the numbers are looked at on a CPU alone.
void check_targets(const at::Tensor& targets, int64_t rows, int64_t vocabulary);

}  // namespace forge::ops
