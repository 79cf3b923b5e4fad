#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "backends/libtorch/model/llama_canon.h"
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
void set_weights(const worker::LlamaCanon& model, const nlohmann::json& weights);

/// Largest absolute difference; infinite where one is not finite or shapes differ in size.
double largest_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace forge::tests
