#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"

namespace forge::ops {

struct NormLinear {
  at::Tensor projection;  ///< [B, T, N]
  at::Tensor residual;    ///< x itself
};

/// RMSNorm with what follows it up to a projection: linear(canon(rms_norm(x, norm_w)), w).
///   x [B, T, C], norm_w [C], w [N, C]; canon over C channels, or none. Where x is bfloat16 norm_w
///   and canon's weight are float32.
/// Differentiable. The backward pass keeps x alone and computes the rest again. x comes back as a
/// second result, so that the gradient of what goes past the block is added in the same pass.
NormLinear norm_linear(const at::Tensor& x,
                       const at::Tensor& norm_w,
                       const RmsNormOptions& norm,
                       const CanonLayer& canon,
                       const WeightMatrix& w);

NormLinear norm_linear_reference(const at::Tensor& x,
                                 const at::Tensor& norm_w,
                                 const RmsNormOptions& norm,
                                 const CanonLayer& canon,
                                 const WeightMatrix& w);

/// y = canon(rms_norm(x)) of contiguous tensors [B, T, C]. On the CPU y may be bfloat16 where x is
/// float32.
void norm_canon_forward_cpu(const at::Tensor& x, const NormCanon& layers, at::Tensor& y);

/// Writes the gradients of sum(y * grad_y) + sum(x * grad_residual), the second sum where there is
/// such a gradient.
void norm_canon_backward_cpu(const at::Tensor& x,
                             const NormCanon& layers,
                             const at::Tensor& grad_y,
                             const at::Tensor& grad_residual,
                             NormCanonGradients& grad);

}  // namespace forge::ops
