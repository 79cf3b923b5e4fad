#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor cross_entropy_reference(const at::Tensor& logits,
                                   const at::Tensor& targets,
                                   const CrossEntropyOptions& options) {
  const bool low_precision =
      logits.scalar_type() == at::kBFloat16 || logits.scalar_type() == at::kHalf;
  const at::Tensor wide = low_precision ? logits.to(at::kFloat) : logits;
  const at::Tensor kept = targets.ne(ignored_target);
  const at::Tensor index = targets.to(at::kLong).clamp_min(0).unsqueeze(1);
  const at::Tensor log_sum_exp = at::logsumexp(wide, {1});
  at::Tensor n = log_sum_exp - wide.gather(1, index).squeeze(1);
  const double c = options.coefficient;
  if (options.z_loss == CrossEntropyOptions::ZLoss::palm) n = n + c * log_sum_exp * log_sum_exp;
  if (options.z_loss == CrossEntropyOptions::ZLoss::lingua_code) n = n + c * n * n;
  const at::Tensor total = at::where(kept, n, at::zeros_like(n)).sum();
  const at::Tensor& counted = options.counted(targets);
  if (options.z_loss == CrossEntropyOptions::ZLoss::lingua_code) return total / counted.numel();
  return total / counted.ne(ignored_target).sum();
}

}  // namespace forge::ops
