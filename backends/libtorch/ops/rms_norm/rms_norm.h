#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/dispatch.h"

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

/// RMSNorm and the Canon layer that follows it, in one pass.
struct NormCanon {
  at::Tensor weight;  ///< [C], of the norm
  RmsNormOptions norm;
  CanonLayer canon;  ///< without activation, or none
};

struct NormCanonGradients {
  at::Tensor x, weight, canon;  ///< canon undefined where there is no layer
};

/// y = canon(rms_norm(x)) of contiguous tensors [B, T, C] on a GPU: one kernel for rms_norm and for
/// norm_linear. Without canon x and y may be parts [1, N, C] of wider tensors, of one width. Writes
/// 1 / rms of each token to scales [B, T], float32.
FORGE_CUDA_ONLY void norm_canon_forward_cuda(const at::Tensor& x,
                                             const NormCanon& layers,
                                             at::Tensor& y,
                                             at::Tensor& scales);

/// Gradients of sum(y * grad_y) + sum(x * grad_residual), the second sum where there is such a
/// gradient. Writes into grad.x, replaces those of the weights, and writes y again if it is
/// defined.
FORGE_CUDA_ONLY void norm_canon_backward_cuda(const at::Tensor& x,
                                              const NormCanon& layers,
                                              const at::Tensor& scales,
                                              const at::Tensor& grad_y,
                                              const at::Tensor& grad_residual,
                                              at::Tensor& y,
                                              NormCanonGradients& grad);

}  // namespace forge::ops
