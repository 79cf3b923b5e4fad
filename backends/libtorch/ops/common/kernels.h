#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

inline bool has_cpu_kernel(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

#ifdef FORGE_WITH_CUDA
constexpr bool built_with_cuda = true;
#else
constexpr bool built_with_cuda = false;
#endif

/// Elements of a row that a GPU's kernels take at a time: rows must be multiples of it.
constexpr int64_t cuda_pack = 8;

/// Most channels of a row that a GPU's kernels of a norm take.
constexpr int64_t cuda_norm_channels = 4096;

inline bool has_cuda_kernel(const at::Tensor& x) {
  return built_with_cuda && x.is_cuda() && x.size(-1) % cuda_pack == 0 &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Whether the operations have kernels of their own for such a tensor.
inline bool has_kernel(const at::Tensor& x) { return has_cpu_kernel(x) || has_cuda_kernel(x); }

/// Whether there are kernels for products of such a tensor with matrices of `operands`: its own
/// type or, on a CPU, bfloat16, to which float32 is rounded.
inline bool has_product_kernel(const at::Tensor& x, at::ScalarType operands) {
  const bool is_rounded = x.is_cpu() && x.scalar_type() == at::kFloat && operands == at::kBFloat16;
  return has_kernel(x) && (x.scalar_type() == operands || is_rounded);
}

/// The type of the small weights (norms, taps) that go with activations of x's type.
inline at::ScalarType small_weight_type(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
}

/// An autograd function takes no undefined tensor: an empty one stands for it.
inline at::Tensor or_empty(const at::Tensor& x) {
  return x.defined() ? x.contiguous() : at::empty({0}, at::kInt);
}
inline at::Tensor or_undefined(const at::Tensor& x) {
  return x.dim() == 1 && x.numel() == 0 ? at::Tensor() : x;
}

}  // namespace forge::ops
