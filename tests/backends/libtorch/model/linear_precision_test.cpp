// Models of linear mixers in float32 against float64, and their generation.

#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/weights.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

/// One of each family and a hybrid with attention, all with convolutions wherever they may stand.
std::vector<model::ModelConfig> linear_models(int hidden_size) {
  std::vector<model::ModelConfig> models;
  for (const char* change :
       {R"({"layers": ["gla5"], "gla5": {"num_heads": 2}, "canon": {"set": "AbCD"}})",
        R"({"layers": ["gdn2"], "gdn2": {"num_heads": 2}, "canon": {"set": "AbBCD"}})",
        R"({"layers": ["mamba2"], "mamba2": {"num_heads": 2, "state_size": 8},
            "canon": {"set": "AbBCD"}})",
        R"({"layers": ["gdn2", "attention"], "gdn2": {"num_heads": 2},
            "canon": {"set": "AbBCD"}})"}) {
    models.push_back(model_of(change));
    models.back().hidden_size = hidden_size;
  }
  return models;
}

struct Computed {
  at::Tensor logits;
  libtorch::NamedTensors gradients;
};

Computed compute(const model::ModelConfig& config, const at::Tensor& ids, at::ScalarType type) {
  libtorch::Model model(config, at::TensorOptions(at::kCPU).dtype(type));
  libtorch::load_initial(model, 7);
  Computed computed{model.logits(ids), {}};
  computed.logits.square().mean().backward();
  computed.gradients = named_gradients(model);
  return computed;
}

TEST_CASE("linear mixers in float32 agree with float64", "[model]") {
  at::manual_seed(51);
  const at::Tensor ids = at::randint(0, 29, {2, 80}, at::kInt);
  for (const int hidden : {16, 96}) {
    const double most = 1e-4;
    for (const model::ModelConfig& config : linear_models(hidden)) {
      INFO(describe(config));
      const Computed exact = compute(config, ids, at::kDouble);
      const Computed found = compute(config, ids, at::kFloat);
      REQUIRE(found.logits.scalar_type() == at::kFloat);
      REQUIRE(largest_difference(found.logits, exact.logits) <= most);
      for (size_t i = 0; i < exact.gradients.size(); ++i) {
        INFO(exact.gradients[i].first);
        const auto& [name, gradient] = found.gradients.at(i);
        REQUIRE(name == exact.gradients[i].first);
        REQUIRE(gradient.scalar_type() == at::kFloat);
        REQUIRE(largest_difference(gradient, exact.gradients[i].second) <= most);
      }
    }
  }
}

/// As on a GPU: no kernel of the CPU takes bfloat16 activations beside float32 norms and taps.
TEST_CASE("linear mixers without kernels agree with float64 in bfloat16", "[model]") {
  at::manual_seed(53);
  const at::Tensor ids = at::randint(0, 29, {2, 80}, at::kInt);
  for (const model::ModelConfig& config : linear_models(16)) {
    INFO(describe(config));
    const Computed exact = compute(config, ids, at::kDouble);
    libtorch::Model model(config, {at::kBFloat16, at::kFloat, std::nullopt}, at::Device("cpu"));
    libtorch::load_initial(model, 7);
    const at::Tensor logits = model.logits(ids);
    REQUIRE(logits.scalar_type() == at::kBFloat16);
    REQUIRE(largest_difference(logits, exact.logits) <= 0.05);
    logits.to(at::kFloat).square().mean().backward();
    for (const auto& [name, gradient] : named_gradients(model)) {
      INFO(name);
      REQUIRE(gradient.isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("linear mixers in float32 decode as the whole row says", "[model]") {
  at::manual_seed(52);
  const at::NoGradGuard no_grad;
  const int64_t length = 70;
  const at::Tensor ids = at::randint(0, 29, {2, length}, at::kInt);
  for (const int hidden : {16, 96}) {
    for (const model::ModelConfig& config : linear_models(hidden)) {
      INFO(describe(config));
      libtorch::Model model(config, at::TensorOptions(at::kCPU).dtype(at::kFloat));
      libtorch::load_initial(model, 7);
      const at::Tensor whole = model.logits(ids);
      libtorch::InferenceState state(model, 2, length);
      for (int64_t read = 0; read < length;) {
        const int64_t next = read == 0 ? 66 : 1;  // a prompt of more than a chunk
        const at::Tensor logits =
            model.next_logits(ids.narrow(1, read, next).contiguous(), {next, next}, &state);
        read += next;
        REQUIRE(largest_difference(logits, whole.select(1, read - 1)) <= 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace forge::tests
