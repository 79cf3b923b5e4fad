#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using ZLoss = CrossEntropyOptions::ZLoss;

struct CrossEntropy : public torch::autograd::Function<CrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& targets,
                            const at::Tensor& counted,
                            int64_t z_loss,
                            double coefficient) {
    at::Tensor log_sum_exp = at::empty({logits.size(0)}, logits.options());
    at::Tensor n = at::empty_like(log_sum_exp);
    cross_entropy_forward_cpu(logits, targets, log_sum_exp, n);
    const at::Tensor kept = targets.ne(ignored_target).to(logits.scalar_type());
    // Factors of softmax and of the one-hot target in the gradient of a row.
    at::Tensor p_scale = kept, target_scale = kept, row_loss = n;
    at::Tensor count = counted.ne(ignored_target).to(logits.scalar_type()).sum();
    if (static_cast<ZLoss>(z_loss) == ZLoss::palm) {
      row_loss = n + kept * (coefficient * log_sum_exp * log_sum_exp);
      p_scale = kept * (1 + 2 * coefficient * log_sum_exp);
    } else if (static_cast<ZLoss>(z_loss) == ZLoss::lingua_code) {
      row_loss = n + coefficient * n * n;
      p_scale = target_scale = kept * (1 + 2 * coefficient * n);
      count = at::full_like(count, double(counted.numel()));
    }
    context->save_for_backward(
        {logits, targets, log_sum_exp, p_scale / count, target_scale / count});
    return row_loss.sum(at::kDouble).to(logits.scalar_type()) / count;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor grad = at::empty_like(saved[0]);
    cross_entropy_backward_cpu(
        saved[0], saved[1], saved[2], saved[3] * grad_outputs[0], saved[4] * grad_outputs[0], grad);
    return {grad, {}, {}, {}, {}};
  }
};

bool is_fused(const at::Tensor& logits) {
  return logits.is_cpu() &&
         (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
}

void check(const at::Tensor& logits, const at::Tensor& targets) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) > 0,
              "cross_entropy: logits must be [rows, vocabulary], are ",
              logits.sizes());
  check_targets(targets, logits.size(0), logits.size(1));
}

}  // namespace

void check_targets(const at::Tensor& targets, int64_t rows, int64_t vocabulary) {
  TORCH_CHECK(targets.dim() == 1 && targets.size(0) == rows && targets.scalar_type() == at::kInt,
              "cross_entropy: targets must be int32 [",
              rows,
              "], are ",
              targets.scalar_type(),
              " ",
              targets.sizes());
  if (!targets.is_cpu() || targets.numel() == 0) return;
  const at::Tensor kept = targets.masked_select(targets.ne(ignored_target));
  if (kept.numel() == 0) return;
  TORCH_CHECK(kept.min().item<int32_t>() >= 0 && kept.max().item<int32_t>() < vocabulary,
              "cross_entropy: a target lies outside the vocabulary of ",
              vocabulary);
}

at::Tensor cross_entropy(const at::Tensor& logits,
                         const at::Tensor& targets,
                         const CrossEntropyOptions& options) {
  check(logits, targets);
  if (!is_fused(logits)) return cross_entropy_reference(logits, targets, options);
  return CrossEntropy::apply(logits.contiguous(),
                             targets.contiguous(),
                             options.counted(targets),
                             static_cast<int64_t>(options.z_loss),
                             options.coefficient);
}

at::Tensor negative_log_likelihood_sum(const at::Tensor& logits, const at::Tensor& targets) {
  check(logits, targets);
  const at::NoGradGuard no_grad;
  if (is_fused(logits)) {
    at::Tensor log_sum_exp = at::empty({logits.size(0)}, logits.options());
    at::Tensor n = at::empty_like(log_sum_exp);
    cross_entropy_forward_cpu(logits.contiguous(), targets.contiguous(), log_sum_exp, n);
    return n.sum(at::kDouble);
  }
  const at::Tensor kept = targets.ne(ignored_target);
  const at::Tensor wide = logits.to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor index = targets.to(at::kLong).clamp_min(0).unsqueeze(1);
  const at::Tensor n = at::logsumexp(wide, {1}) - wide.gather(1, index).squeeze(1);
  return at::where(kept, n, at::zeros_like(n)).sum(at::kDouble);
}

}  // namespace forge::ops
