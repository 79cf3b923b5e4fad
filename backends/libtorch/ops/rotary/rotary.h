#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// Angles of rotary position encoding (Su et al. 2021): pair i of r/2 is rotated by
/// p * theta^(-2i/r) at position p. Computed in double, kept in the model's dtype, in float32 for a
/// bfloat16 model.
struct RotaryTable {
  at::Tensor cos;            ///< [T, r/2]
  at::Tensor sin;            ///< [T, r/2]
  bool interleaved = false;  ///< pairs (2i, 2i+1) instead of (i, i + r/2)
};

RotaryTable rotary_table(int64_t length,
                         int64_t rope_dim,
                         double theta,
                         bool interleaved,
                         const at::TensorOptions& options);

/// Rotates the first r channels of each head: a pair (a, b) becomes (a cos - b sin, a sin + b cos).
///   x [B, T, H, D], last dimension contiguous. Returns the same shape, contiguous. Differentiable.
at::Tensor rotary(const at::Tensor& x, const RotaryTable& table);

at::Tensor rotary_reference(const at::Tensor& x, const RotaryTable& table);

}  // namespace forge::ops
