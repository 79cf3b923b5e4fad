#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// RMSNorm (Zhang & Sennrich 2019): y = w * x / sqrt(mean(x^2) + eps) over the last dimension.
///   x [..., C], w [C]. Statistics in float32 where x is of lower precision; the normalised value
///   is rounded to x's dtype before the product with w, as Hugging Face's Llama does.
/// Differentiable in x and w.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, double eps);

at::Tensor rms_norm_reference(const at::Tensor& x, const at::Tensor& w, double eps);

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
