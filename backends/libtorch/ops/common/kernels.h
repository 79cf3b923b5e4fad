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

inline bool has_cuda_kernel(const at::Tensor& x) {
  return built_with_cuda && x.is_cuda() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Whether a GPU's kernels can read rows of such a tensor in accesses of 16 bytes, as most do.
inline bool has_cuda_packs(const at::Tensor& x) { return x.size(-1) % 8 == 0; }

/// Whether the kernels of a norm over so many of its channels can.
inline bool fits_cuda_norm(const at::Tensor& x, int64_t channels) {
  constexpr int64_t most_channels = 4096;
  return has_cuda_packs(x) && channels % 8 == 0 && channels <= most_channels;
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
