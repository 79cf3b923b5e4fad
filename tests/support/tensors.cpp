#include "tests/support/tensors.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/base/error.h"

namespace forge::tests {
namespace {

void flatten(const nlohmann::json& json, std::vector<double>& numbers) {
  if (!json.is_array()) {
    numbers.push_back(json.get<double>());
    return;
  }
  for (const auto& item : json) flatten(item, numbers);
}

}  // namespace

std::vector<std::filesystem::path> vector_files(const std::string& prefix) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(vectors_dir())) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && entry.path().extension() == ".json")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

at::Device test_device() {
  const char* chosen = std::getenv("FORGE_TEST_DEVICE");
  return at::Device(chosen && *chosen ? chosen : "cpu");
}

at::Tensor tensor_of(const nlohmann::json& numbers, at::IntArrayRef shape, at::ScalarType type) {
  std::vector<double> flat;
  flatten(numbers, flat);
  const at::Tensor tensor = at::tensor(flat, at::kDouble).view(shape);
  return tensor.to(test_device(), type);
}

at::Tensor float32_tensor_of(const nlohmann::json& numbers,
                             at::IntArrayRef shape,
                             at::ScalarType type) {
  return tensor_of(numbers, shape, at::kFloat).to(type);
}

void set_weights(const libtorch::Model& model, const nlohmann::json& weights) {
  for (const auto& [name, weight] : model.named_weights()) {
    const std::string stored = vector_weight_name(name, model.config());
    if (!weights.at("data").contains(stored)) throw Error("no weight '" + stored + "'");
    at::Tensor(weight).copy_(
        float32_tensor_of(weights.at("data").at(stored), weight.sizes(), at::kDouble));
  }
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() != b.numel()) return INFINITY;
  if (a.numel() == 0) return 0;
  const at::Tensor difference =
      (a.detach().cpu().to(at::kDouble).flatten() - b.detach().cpu().to(at::kDouble).flatten())
          .abs();
  const double largest = difference.max().item<double>();
  return std::isfinite(largest) ? largest : INFINITY;
}

namespace {

constexpr Types float64{"float64", at::kDouble, at::kDouble, at::kDouble, 1e-11};
constexpr Types float32{"float32", at::kFloat, at::kFloat, at::kFloat, 2e-5};
constexpr Types bfloat16_products{"bfloat16 products", at::kFloat, at::kFloat, at::kBFloat16, 0.03};
constexpr Types bfloat16{"bfloat16", at::kBFloat16, at::kFloat, at::kBFloat16, 0.03};

at::Tensor representable_normal(at::IntArrayRef shape, double scale) {
  return (at::randn(shape, at::kDouble) * scale)
      .to(at::kBFloat16)
      .to(at::kDouble)
      .to(test_device());
}

struct Outcome {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
};

/// The operation on slices of tensors twice as wide, as a model gives it parts of larger ones.
Outcome run(const Operation& operation,
            const std::vector<at::Tensor>& inputs,
            const at::Tensor& upstream) {
  std::vector<at::Tensor> leaves, slices;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.detach().clone().requires_grad_(true));
    const at::Tensor wide = at::cat({leaves.back(), leaves.back().detach()}, -1);
    slices.push_back(wide.narrow(-1, 0, input.size(-1)));
  }
  Outcome outcome;
  outcome.output = operation(slices);
  if (outcome.output.requires_grad())  // the sum of nothing may not
    outcome.output.backward(upstream.to(outcome.output.scalar_type()));
  for (const at::Tensor& leaf : leaves) {
    outcome.gradients.push_back(leaf.grad().defined() ? leaf.grad()
                                                      : at::zeros_like(leaf.detach()));
  }
  return outcome;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (a.numel() == 0) return 0;
  const double scale = std::max(1.0, b.detach().abs().max().item<double>());
  const at::Tensor difference = (a.detach().to(at::kDouble) - b.detach()).abs();
  const double largest = difference.max().item<double>() / scale;
  return std::isfinite(largest) ? largest : INFINITY;
}

}  // namespace

ops::WeightMatrix Types::matrix(const at::Tensor& stored) const {
  if (products == weights) return stored;
  return {stored, stored.detach().to(products).contiguous()};
}

std::vector<Types> types_of_passes() {
  if (test_device().is_cuda()) return {float64, float32, bfloat16};
  return {float64, float32};
}

std::vector<Types> types_of_products() {
  return {float64, float32, test_device().is_cuda() ? bfloat16 : bfloat16_products};
}

Input activation(at::IntArrayRef shape, double scale) {
  return {representable_normal(shape, scale), false};
}

Input weight(at::IntArrayRef shape, double scale) {
  return {representable_normal(shape, scale), true};
}

double fused_against_reference(const Types& types,
                               const Operation& fused,
                               const Operation& reference,
                               const std::vector<Input>& inputs) {
  std::vector<at::Tensor> exact, typed;
  for (const Input& input : inputs) {
    exact.push_back(input.value);
    typed.push_back(input.value.to(input.is_weight ? types.weights : types.activations));
  }
  const at::Tensor shape = reference(exact).detach();
  const at::Tensor upstream = representable_normal(shape.sizes(), 1);
  const Outcome a = run(fused, typed, upstream);
  const Outcome b = run(reference, exact, upstream);
  double worst = relative_difference(a.output, b.output);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    worst = std::max(worst, relative_difference(a.gradients[i], b.gradients[i]));
  }
  return worst;
}

}  // namespace forge::tests
