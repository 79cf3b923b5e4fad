#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// Whether the operations have kernels of their own for such a tensor.
inline bool has_cpu_kernel(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

/// An autograd function takes no undefined tensor: an empty one stands for it.
inline at::Tensor or_empty(const at::Tensor& x) {
  return x.defined() ? x.contiguous() : at::empty({0}, at::kInt);
}
inline at::Tensor or_undefined(const at::Tensor& x) {
  return x.dim() == 1 && x.numel() == 0 ? at::Tensor() : x;
}

}  // namespace forge::ops
