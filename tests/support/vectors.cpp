#include "tests/support/vectors.h"

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

void set_weights(const worker::LlamaCanon& model, const nlohmann::json& weights) {
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

}  // namespace forge::tests
