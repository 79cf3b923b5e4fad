#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"

namespace forge::ops {

/// The second half of a gated MLP: linear(swiglu(canon(gate_up)), w).
///   gate_up [B, T, 2I], w [C, I]; canon over its 2I channels, or none
/// Returns [B, T, C]. Differentiable. On a CPU the backward pass keeps gate_up alone and computes
/// the rest again; what is between the matrix products is one pass over memory each way.
at::Tensor swiglu_linear(const at::Tensor& gate_up, const CanonLayer& canon, const at::Tensor& w);

at::Tensor swiglu_linear_reference(const at::Tensor& gate_up,
                                   const CanonLayer& canon,
                                   const at::Tensor& w);

/// y [B, T, I] = swiglu(canon(gate_up)) of contiguous tensors; canon without activation.
void canon_swiglu_forward_cpu(const at::Tensor& gate_up, const CanonLayer& canon, at::Tensor& y);

/// y again, and the gradients of sum(y * grad_y); grad_canon is written where there is a layer.
void canon_swiglu_backward_cpu(const at::Tensor& gate_up,
                               const CanonLayer& canon,
                               const at::Tensor& grad_y,
                               at::Tensor& y,
                               at::Tensor& grad_gate_up,
                               at::Tensor& grad_canon);

}  // namespace forge::ops
