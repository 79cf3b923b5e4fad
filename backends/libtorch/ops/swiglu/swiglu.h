#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// SwiGLU (Shazeer 2020): silu(gate) * up for gate_up [..., 2I] = [gate | up]. Returns [..., I].
/// Differentiable.
at::Tensor swiglu(const at::Tensor& gate_up);

at::Tensor swiglu_reference(const at::Tensor& gate_up);

/// y [..., I] = swiglu(gate_up) of contiguous CPU tensors. y may be bfloat16 if gate_up is float32.
void swiglu_forward_cpu(const at::Tensor& gate_up, at::Tensor& y);

/// The gradient of sum(y * grad_y) in gate_up, and y again if it is defined.
void swiglu_backward_cpu(const at::Tensor& gate_up,
                         const at::Tensor& grad_y,
                         at::Tensor& y,
                         at::Tensor& grad_gate_up);

}  // namespace forge::ops
