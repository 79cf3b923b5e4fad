#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"

#include <cmath>

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
  return total / counted.ne(ignored_target).sum().clamp_min(1);
}

namespace {

/// n = logsumexp(logits) - logits[target] of each row, [N]; of an unscored row 0.
at::Tensor row_losses(const at::Tensor& logits, const at::Tensor& targets) {
  at::Tensor losses = at::empty({logits.size(0)}, logits.options());
  with_element_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = logits.size(1);
    for_each_row_chunk(logits.size(0), [&](int64_t, int64_t begin, int64_t end) {
      const int32_t* target = targets.data_ptr<int32_t>();
      T* out = losses.data_ptr<T>();
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          const T* x = logits.data_ptr<T>() + row * width;
          T largest = x[0];
#pragma omp simd reduction(max : largest)
          for (int64_t i = 0; i < width; ++i) largest = x[i] > largest ? x[i] : largest;
          T sum = 0;
#pragma omp simd reduction(+ : sum)
          for (int64_t i = 0; i < width; ++i) sum += fast_exp(x[i] - largest);
          const T log_sum_exp = largest + std::log(sum);
          out[row] = target[row] == ignored_target ? T(0) : log_sum_exp - x[target[row]];
        }
      });
    });
  });
  return losses;
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

at::Tensor negative_log_likelihoods(const at::Tensor& logits, const at::Tensor& targets) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) > 0,
              "cross_entropy: logits must be [rows, vocabulary], are ",
              logits.sizes());
  check_targets(targets, logits.size(0), logits.size(1));
  const at::NoGradGuard no_grad;
  if (has_cpu_kernel(logits)) return row_losses(logits.contiguous(), targets.contiguous());
  const at::Tensor wide = logits.to(logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor index = targets.to(at::kLong).clamp_min(0).unsqueeze(1);
  const at::Tensor n = at::logsumexp(wide, {1}) - wide.gather(1, index).squeeze(1);
  return at::where(targets.ne(ignored_target), n, at::zeros_like(n));
}

}  // namespace forge::ops
