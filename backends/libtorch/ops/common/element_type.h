#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// Calls body(T()), T the C++ type of float32 or float64.
template <class Body>
void with_element_type(at::ScalarType type, const Body& body) {
  type == at::kFloat ? body(float()) : body(double());
}

/// Calls body(T(), E()) for operands of matrix products: E their C++ type, T that of the sums,
/// which is float for bfloat16 operands.
template <class Body>
void with_operand_type(at::ScalarType operands, const Body& body) {
  if (operands == at::kBFloat16) return body(float(), at::BFloat16());
  with_element_type(operands, [&](auto zero) { body(zero, zero); });
}

}  // namespace forge::ops
