#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/linear/linear.h"

namespace forge::ops {

/// The second half of a gated MLP: linear(swiglu(canon(gate_up)), w) [+ residual].
///   gate_up [B, T, 2I], w [C, I], residual [B, T, C]; canon over the 2I channels, or none
/// Returns [B, T, C]. Differentiable. The backward pass keeps gate_up alone and computes the rest
/// again; what is between the matrix products is one pass over memory each way.
at::Tensor swiglu_linear(const at::Tensor& gate_up,
                         const CanonLayer& canon,
                         const WeightMatrix& w,
                         const at::Tensor& residual = {},
                         Numbers numbers = Numbers::computed);

at::Tensor swiglu_linear_reference(const at::Tensor& gate_up,
                                   const CanonLayer& canon,
                                   const WeightMatrix& w,
                                   const at::Tensor& residual = {});

/// y [B, T, I] = swiglu(canon(gate_up)) of contiguous tensors; canon without activation. On the
/// CPU y may be bfloat16 where gate_up is float32.
void canon_swiglu_forward_cpu(const at::Tensor& gate_up, const CanonLayer& canon, at::Tensor& y);
FORGE_CUDA_ONLY void canon_swiglu_forward_cuda(const at::Tensor& gate_up,
                                               const CanonLayer& canon,
                                               at::Tensor& y);

/// y again, and the gradients of sum(y * grad_y); grad_canon is written where there is a layer.
void canon_swiglu_backward_cpu(const at::Tensor& gate_up,
                               const CanonLayer& canon,
                               const at::Tensor& grad_y,
                               at::Tensor& y,
                               at::Tensor& grad_gate_up,
                               at::Tensor& grad_canon);
FORGE_CUDA_ONLY void canon_swiglu_backward_cuda(const at::Tensor& gate_up,
                                                const CanonLayer& canon,
                                                const at::Tensor& grad_y,
                                                at::Tensor& y,
                                                at::Tensor& grad_gate_up,
                                                at::Tensor& grad_canon);

}  // namespace forge::ops
