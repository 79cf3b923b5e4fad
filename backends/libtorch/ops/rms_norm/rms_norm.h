#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

struct RmsNormOptions {
  double eps = 1e-5;
  /// What happens where x is of lower precision than float32: true rounds the normalised value to
  /// x's dtype before the product with w (Hugging Face's Llama), false multiplies by w in float32
  /// and rounds once (Meta Lingua).
  bool round_before_weight = true;
};

/// RMSNorm (Zhang & Sennrich 2019): y = w * x / sqrt(mean(x^2) + eps) over the last dimension.
///   x [..., C], w [C] of x's type or float32. Statistics in float32 where x is of lower precision.
/// Differentiable in x and w.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, const RmsNormOptions& options);

/// rms_norm of the first channels of x [..., C], as many as `first` has, and by itself of as many
/// after them as `second` has; the others are left as they are. Differentiable in x and weights.
at::Tensor rms_norm_of_parts(const at::Tensor& x,
                             const at::Tensor& first,
                             const at::Tensor& second,
                             const RmsNormOptions& options);

at::Tensor rms_norm_reference(const at::Tensor& x,
                              const at::Tensor& w,
                              const RmsNormOptions& options);

/// x and y [N, C] contiguous on the CPU; `scale` [N] receives 1 / sqrt(mean(x^2) + eps).
void rms_norm_forward_cpu(
    const at::Tensor& x, const at::Tensor& w, double eps, at::Tensor& y, at::Tensor& scale);

void rms_norm_backward_cpu(const at::Tensor& x,
                           const at::Tensor& w,
                           const at::Tensor& scale,
                           const at::Tensor& grad_y,
                           at::Tensor& grad_x,
                           at::Tensor& grad_w);

}  // namespace forge::ops
