#pragma once

#include <functional>
#include <vector>

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::tests {

/// In which types an operation is tested, and how far it may be from its reference.
struct Types {
  const char* name;
  at::ScalarType activations;
  at::ScalarType weights;
  at::ScalarType products;  ///< what matrices are rounded to
  double tolerance;         ///< relative to the largest number of a tensor

  /// A stored matrix with what products read.
  ops::WeightMatrix matrix(const at::Tensor& stored) const;
};

/// For operations without matrix products: float64 and float32, on a GPU bfloat16 too.
std::vector<Types> types_of_passes();
/// For operations with: bfloat16 products too, of float32 activations on a CPU and of bfloat16 ones
/// on a GPU.
std::vector<Types> types_of_products();

struct Input {
  at::Tensor value;  ///< float64
  bool is_weight = false;
};

/// Random normal numbers that bfloat16 can represent, so that a test in any type begins with the
/// same ones.
Input activation(at::IntArrayRef shape, double scale = 1);
Input weight(at::IntArrayRef shape, double scale = 1);

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Runs the operation in the given types and its reference in float64, forward and backward from
/// one random upstream gradient, on slices of larger tensors; returns the largest difference of
/// outputs and gradients, relative to the largest number of each tensor where that is above one.
double fused_against_reference(const Types& types,
                               const Operation& fused,
                               const Operation& reference,
                               const std::vector<Input>& inputs);

}  // namespace forge::tests
