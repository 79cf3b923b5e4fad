#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// What the operands of matrix products are rounded to. Sums are not: those of bfloat16 operands
/// are float32.
enum class Products {
  as_stored,  ///< the tensors' own dtype
  bfloat16,   ///< float32 operands become bfloat16
};

/// A CPU tensor as an operand: itself, or a contiguous copy rounded to the nearest bfloat16.
at::Tensor operand(const at::Tensor& x, Products products);

/// The dtype of operands made from tensors of dtype `stored`.
at::ScalarType operand_type(at::ScalarType stored, Products products);

}  // namespace forge::ops
