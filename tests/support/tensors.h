#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"
#include "tests/support/vector_case.h"

namespace forge::tests {

/// Files of vectors_dir() whose names begin with `prefix` and end with .json, sorted.
std::vector<std::filesystem::path> vector_files(const std::string& prefix);

nlohmann::json read_json(const std::filesystem::path& path);

/// Device that tests of the model run on: FORGE_TEST_DEVICE where set, else the CPU.
at::Device test_device();

/// Numbers of a JSON array, nested or flat, as a tensor of this shape on the test device.
at::Tensor tensor_of(const nlohmann::json& numbers, at::IntArrayRef shape, at::ScalarType type);

/// The same for weights and inputs: the files write exact float32 values in the fewest digits, so
/// they are rounded to float32 before they are widened.
at::Tensor float32_tensor_of(const nlohmann::json& numbers,
                             at::IntArrayRef shape,
                             at::ScalarType type);

/// Gives a model the shared weights, whose JSON this is. Throws Error naming one that is missing.
void set_weights(const libtorch::Model& model, const nlohmann::json& weights);

/// Largest absolute difference; infinite where one is not finite or shapes differ in size.
double largest_difference(const at::Tensor& a, const at::Tensor& b);

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
