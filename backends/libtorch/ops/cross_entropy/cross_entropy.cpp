#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"

#include <cmath>

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/simd.h"
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

namespace {

template <class T>
FORGE_INLINE void forward_rows(int64_t begin,
                               int64_t end,
                               int64_t width,
                               const T* logits,
                               const int32_t* targets,
                               T* log_sum_exp,
                               T* row_loss) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = logits + row * width;
    T largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < width; ++i) largest = x[i] > largest ? x[i] : largest;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += fast_exp(x[i] - largest);
    log_sum_exp[row] = largest + std::log(sum);
    const bool kept = targets[row] != ignored_target;
    row_loss[row] = kept ? log_sum_exp[row] - x[targets[row]] : T(0);
  }
}

template <class T>
FORGE_INLINE void backward_rows(int64_t begin,
                                int64_t end,
                                int64_t width,
                                const T* logits,
                                const int32_t* targets,
                                const T* log_sum_exp,
                                const T* p_scale,
                                const T* target_scale,
                                T* grad) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = logits + row * width;
    T* __restrict g = grad + row * width;
    const T lse = log_sum_exp[row], scale = p_scale[row];
    for (int64_t i = 0; i < width; ++i) g[i] = scale * fast_exp(x[i] - lse);
    if (targets[row] != ignored_target) g[targets[row]] -= target_scale[row];
  }
}

/// log_sum_exp and n = log_sum_exp - logits[target] of each row, [N]; n of an unscored row is 0.
void forward(const at::Tensor& logits,
             const at::Tensor& targets,
             at::Tensor& log_sum_exp,
             at::Tensor& row_loss) {
  with_element_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row_chunk(logits.size(0), [&](int64_t, int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        forward_rows(begin,
                     end,
                     logits.size(1),
                     logits.data_ptr<T>(),
                     targets.data_ptr<int32_t>(),
                     log_sum_exp.data_ptr<T>(),
                     row_loss.data_ptr<T>());
      });
    });
  });
}

/// grad_logits[r,:] = p_scale[r] * softmax(logits[r,:]) - target_scale[r] * onehot(target).
void backward(const at::Tensor& logits,
              const at::Tensor& targets,
              const at::Tensor& log_sum_exp,
              const at::Tensor& p_scale,
              const at::Tensor& target_scale,
              at::Tensor& grad_logits) {
  with_element_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row_chunk(logits.size(0), [&](int64_t, int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        backward_rows(begin,
                      end,
                      logits.size(1),
                      logits.data_ptr<T>(),
                      targets.data_ptr<int32_t>(),
                      log_sum_exp.data_ptr<T>(),
                      p_scale.data_ptr<T>(),
                      target_scale.data_ptr<T>(),
                      grad_logits.data_ptr<T>());
      });
    });
  });
}

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
    ops::forward(logits, targets, log_sum_exp, n);
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
    ops::backward(
        saved[0], saved[1], saved[2], saved[3] * grad_outputs[0], saved[4] * grad_outputs[0], grad);
    return {grad, {}, {}, {}, {}};
  }
};

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
  if (!has_cpu_kernel(logits)) return cross_entropy_reference(logits, targets, options);
  return CrossEntropy::apply(logits.contiguous(),
                             targets.contiguous(),
                             options.counted(targets),
                             static_cast<int64_t>(options.z_loss),
                             options.coefficient);
}

at::Tensor negative_log_likelihood_sum(const at::Tensor& logits, const at::Tensor& targets) {
  check(logits, targets);
  const at::NoGradGuard no_grad;
  if (has_cpu_kernel(logits)) {
    at::Tensor log_sum_exp = at::empty({logits.size(0)}, logits.options());
    at::Tensor n = at::empty_like(log_sum_exp);
    forward(logits.contiguous(), targets.contiguous(), log_sum_exp, n);
    return n.sum(at::kDouble);
  }
  const at::Tensor kept = targets.ne(ignored_target);
  const at::Tensor wide = logits.to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor index = targets.to(at::kLong).clamp_min(0).unsqueeze(1);
  const at::Tensor n = at::logsumexp(wide, {1}) - wide.gather(1, index).squeeze(1);
  return at::where(kept, n, at::zeros_like(n)).sum(at::kDouble);
}

}  // namespace forge::ops
