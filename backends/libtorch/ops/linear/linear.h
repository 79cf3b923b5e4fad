#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// y = x w^T for x [..., K] and w [N, K]. Returns [..., N]. Differentiable in both. On a CPU the
/// products go through gemm.h, elsewhere through at::linear, which is the reference.
at::Tensor linear(const at::Tensor& x, const at::Tensor& w);

/// x [M, K], w [N, K], y and grad_y [M, N], contiguous on the CPU, float or double.
void linear_forward_cpu(const at::Tensor& x, const at::Tensor& w, at::Tensor& y);
void linear_backward_x_cpu(const at::Tensor& grad_y, const at::Tensor& w, at::Tensor& grad_x);
void linear_backward_w_cpu(const at::Tensor& grad_y, const at::Tensor& x, at::Tensor& grad_w);

}  // namespace forge::ops
