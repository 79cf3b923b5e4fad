// The whole model against reference vectors computed in float64 by an independent implementation:
// every case file of the folder, in double and in single precision.
#include "tests/support/torch_catch.h"

#include <iostream>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

using nlohmann::json;

config::ModelConfig model_config(const json& c) {
  config::ModelConfig model;
  model.vocab_size = c.at("vocab_size");
  model.hidden_size = c.at("hidden_size");
  model.intermediate_size = c.at("intermediate_size");
  model.num_layers = c.at("num_hidden_layers");
  model.num_heads = c.at("num_attention_heads");
  model.num_kv_heads = c.at("num_key_value_heads");
  model.head_dim = c.at("head_dim");
  model.rms_norm_eps = c.at("rms_norm_eps");
  model.tie_embeddings = c.at("tie_word_embeddings");
  model.position.theta = c.at("rope_theta");
  if (c.at("nope") == true) model.position.kind = config::PositionKind::nope;
  if (!c.at("rope_dim").is_null()) model.position.rope_dim = c.at("rope_dim").get<int>();
  if (c.at("rope_version") == "lingua") model.position.pairing = config::RopePairing::lingua;
  model.canon.set = c.at("canon_set");
  model.canon.kernel = c.at("canon_kernel");
  model.canon.residual = c.at("canon_residual");
  if (c.at("canon_activation") == true) model.canon.activation = config::Activation::silu;
  if (c.at("qk_norm") == true) model.qk_norm = config::QkNorm::full;
  if (c.at("qk_norm") == "per_head") model.qk_norm = config::QkNorm::per_head;
  return model;
}

ops::CrossEntropyOptions loss_options(const json& c) {
  using ZLoss = ops::CrossEntropyOptions::ZLoss;
  if (c.at("z_loss").is_null()) return {};
  return {c.at("z_loss") == "palm" ? ZLoss::palm : ZLoss::lingua_code, 1e-4};
}

/// Name under which the shared weight file keeps a weight: per-head norms have entries of their
/// own.
std::string stored_name(const std::string& name, const config::ModelConfig& model) {
  if (model.qk_norm != config::QkNorm::per_head) return name;
  for (const std::string norm : {"q_norm", "k_norm"}) {
    const size_t at = name.find(norm + ".weight");
    if (at != std::string::npos) return name.substr(0, at) + norm + "_head.weight";
  }
  return name;
}

void set_weights(const worker::LlamaCanon& model, const json& weights) {
  for (const auto& [name, weight] : model.named_weights()) {
    const std::string stored = stored_name(name, model.config());
    REQUIRE(weights.at("data").contains(stored));
    at::Tensor(weight).copy_(
        float32_tensor_of(weights.at("data").at(stored), weight.sizes(), at::kDouble));
  }
}

struct Tolerance {
  double logits, loss, gradient;
};

void check_gradients(const worker::LlamaCanon& model,
                     const json& expected,
                     double tolerance,
                     double& worst) {
  for (const auto& [name, gradient] : model.named_gradients()) {
    INFO(name);
    const std::string key =
        expected.at("grad_l2").contains(name) ? name : stored_name(name, model.config());
    const double norm = gradient.norm().item<double>();
    const double norm_difference = std::fabs(norm - expected.at("grad_l2").at(key).get<double>());
    REQUIRE(norm_difference <= tolerance);
    const at::Tensor head = gradient.flatten().narrow(0, 0, std::min<int64_t>(8, gradient.numel()));
    const double head_difference = largest_difference(
        head, tensor_of(expected.at("grad_head8").at(key), head.sizes(), at::kDouble));
    REQUIRE(head_difference <= tolerance);
    worst = std::max({worst, norm_difference, head_difference});
    if (!expected.at("grads").contains(key)) continue;
    const json& full = expected.at("grads").at(key).at("data");
    const double difference =
        largest_difference(gradient, tensor_of(full, gradient.sizes(), at::kDouble));
    REQUIRE(difference <= tolerance);
    worst = std::max(worst, difference);
  }
}

void check_case(const json& expected,
                const json& inputs,
                const json& weights,
                at::ScalarType type,
                Tolerance tolerance) {
  const config::ModelConfig config = model_config(expected.at("config"));
  const worker::LlamaCanon model(config, at::TensorOptions(test_device()).dtype(type));
  set_weights(model, weights);
  const int64_t batch = inputs.at("input_ids").size(), length = inputs.at("input_ids").at(0).size();
  const at::Tensor ids = tensor_of(inputs.at("input_ids"), {batch, length}, at::kInt);
  const json& label_ids =
      expected.contains("labels") ? expected.at("labels") : inputs.at("input_ids");
  const at::Tensor labels = tensor_of(label_ids, {batch, length}, at::kInt);
  const at::Tensor doc_ids = expected.contains("doc_ids")
                                 ? tensor_of(expected.at("doc_ids"), {batch, length}, at::kInt)
                                 : at::Tensor();

  std::vector<at::Tensor> residual_stream;
  const at::Tensor logits = model.logits(ids, doc_ids, &residual_stream);
  const double logit_difference = largest_difference(
      logits, tensor_of(expected.at("logits"), {batch, length, config.vocab_size}, at::kDouble));
  REQUIRE(logit_difference <= tolerance.logits);
  for (size_t i = 0; i < residual_stream.size(); ++i) {
    const double norm = residual_stream[i].norm().item<double>();
    REQUIRE(std::fabs(norm - expected.at("hidden_l2").at(i).get<double>()) <=
            tolerance.logits * 50);
  }
  const at::Tensor loss =
      ops::cross_entropy(logits.narrow(1, 0, length - 1).reshape({-1, config.vocab_size}),
                         labels.narrow(1, 1, length - 1).reshape({-1}),
                         loss_options(expected.at("config")));
  const double loss_difference = std::fabs(loss.item<double>() - expected.at("loss").get<double>());
  REQUIRE(loss_difference <= tolerance.loss);
  loss.backward();
  double gradient_difference = 0;
  check_gradients(model, expected, tolerance.gradient, gradient_difference);
  std::cout << "  " << at::toString(type) << ": logits " << logit_difference << ", loss "
            << loss_difference << ", gradients " << gradient_difference << "\n";
}

TEST_CASE("every reference case of the model agrees in double and single precision", "[vectors]") {
  const std::vector<std::filesystem::path> files = vector_files("case_");
  INFO(vectors_dir());
  REQUIRE_FALSE(files.empty());
  const json inputs = read_json(vectors_dir() / "llama_inputs.json");
  const json weights = read_json(vectors_dir() / "llama_weights.json");
  for (const auto& file : files) {
    INFO(file.filename());
    std::cout << file.filename().string() << "\n";
    const json expected = read_json(file);
    check_case(expected, inputs, weights, at::kDouble, {1e-9, 1e-9, 1e-9});
    check_case(expected, inputs, weights, at::kFloat, {2e-5, 5e-6, 5e-6});
  }
}

}  // namespace
}  // namespace forge::tests
