#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"

namespace forge::ops {

/// RMSNorm with what follows it up to a projection: linear(canon(rms_norm(x, norm_w)), w).
///   x [B, T, C], norm_w [C], w [N, C]; canon over C channels, or none
/// Returns [B, T, N]. Differentiable. On a CPU the backward pass keeps x alone and computes the
/// rest again.
at::Tensor norm_linear(const at::Tensor& x,
                       const at::Tensor& norm_w,
                       const RmsNormOptions& norm,
                       const CanonLayer& canon,
                       const at::Tensor& w);

at::Tensor norm_linear_reference(const at::Tensor& x,
                                 const at::Tensor& norm_w,
                                 const RmsNormOptions& norm,
                                 const CanonLayer& canon,
                                 const at::Tensor& w);

/// y = canon(rms_norm(x)) of contiguous tensors [B, T, C]; canon without activation.
void norm_canon_forward_cpu(const at::Tensor& x,
                            const at::Tensor& norm_w,
                            double eps,
                            const CanonLayer& canon,
                            at::Tensor& y);

/// Gradients of sum(y * grad_y); grad_canon is written where there is a layer.
void norm_canon_backward_cpu(const at::Tensor& x,
                             const at::Tensor& norm_w,
                             double eps,
                             const CanonLayer& canon,
                             const at::Tensor& grad_y,
                             at::Tensor& grad_x,
                             at::Tensor& grad_norm_w,
                             at::Tensor& grad_canon);

}  // namespace forge::ops
