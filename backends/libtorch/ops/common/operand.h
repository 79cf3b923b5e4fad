#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// x as an operand of matrix products of type `type`: x itself where it has that type, or, float32
/// on the CPU, a contiguous copy rounded to the nearest bfloat16. Sums stay float32.
at::Tensor as_operand(const at::Tensor& x, at::ScalarType type);

}  // namespace forge::ops
