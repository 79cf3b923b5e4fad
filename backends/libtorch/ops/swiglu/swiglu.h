#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// SwiGLU (Shazeer 2020): silu(gate) * up for gate_up [..., 2I] = [gate | up]. Returns [..., I].
/// Differentiable.
at::Tensor swiglu(const at::Tensor& gate_up);

at::Tensor swiglu_reference(const at::Tensor& gate_up);

}  // namespace forge::ops
