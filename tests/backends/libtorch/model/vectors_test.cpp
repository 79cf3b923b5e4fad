// The whole model against reference vectors computed in float64 by an independent implementation:
// every case file of the folder, in double and in single precision.
#include "tests/support/torch_catch.h"

#include <iostream>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/worker/trainer.h"
#include "core/model/parameters.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

using nlohmann::json;

struct Tolerance {
  double logits, loss, gradient;
};

/// Largest differences over all cases of one precision.
struct Worst {
  double logits = 0, loss = 0, gradient = 0;
};

void check_gradients(const worker::LlamaCanon& model,
                     const json& expected,
                     double tolerance,
                     double& worst) {
  const worker::NamedTensors gradients = model.named_gradients();
  REQUIRE(gradients.size() == expected.at("params").size());
  for (const auto& [name, gradient] : gradients) {
    INFO(name);
    const std::string key =
        expected.at("grad_l2").contains(name) ? name : vector_weight_name(name, model.config());
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
                Tolerance tolerance,
                Worst& worst) {
  const VectorCase read = read_vector_case(expected.at("config"));
  const config::ModelConfig& config = read.model;
  REQUIRE(model::parameter_count(config) == expected.at("n_params"));
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
  const at::Tensor logits = model.logits(ids, ops::divide_documents(doc_ids), &residual_stream);
  const double logit_difference = largest_difference(
      logits, tensor_of(expected.at("logits"), {batch, length, config.vocab_size}, at::kDouble));
  REQUIRE(logit_difference <= tolerance.logits);
  REQUIRE(residual_stream.size() == expected.at("hidden_l2").size());
  for (size_t i = 0; i < residual_stream.size(); ++i) {
    const double norm = residual_stream[i].norm().item<double>();
    REQUIRE(std::fabs(norm - expected.at("hidden_l2").at(i).get<double>()) <=
            tolerance.logits * 50);
  }
  const at::Tensor loss =
      ops::cross_entropy(logits.narrow(1, 0, length - 1).reshape({-1, config.vocab_size}),
                         labels.narrow(1, 1, length - 1).reshape({-1}),
                         worker::loss_options(read.z_loss));
  const double loss_difference = std::fabs(loss.item<double>() - expected.at("loss").get<double>());
  REQUIRE(loss_difference <= tolerance.loss);
  loss.backward();
  double gradient_difference = 0;
  check_gradients(model, expected, tolerance.gradient, gradient_difference);
  std::cout << "  " << at::toString(type) << ": logits " << logit_difference << ", loss "
            << loss_difference << ", gradients " << gradient_difference << "\n";
  worst.logits = std::max(worst.logits, logit_difference);
  worst.loss = std::max(worst.loss, loss_difference);
  worst.gradient = std::max(worst.gradient, gradient_difference);
}

void print(const char* precision, const Worst& worst) {
  std::cout << "largest differences in " << precision << ": logits " << worst.logits << ", loss "
            << worst.loss << ", gradients " << worst.gradient << "\n";
}

TEST_CASE("every reference case of the model agrees in double and single precision", "[vectors]") {
  const std::vector<std::filesystem::path> files = vector_files("case_");
  INFO(vectors_dir());
  REQUIRE_FALSE(files.empty());
  const json inputs = read_json(shared_vector_file("llama_inputs.json"));
  const json weights = read_json(shared_vector_file("llama_weights.json"));
  Worst in_double, in_single;
  for (const auto& file : files) {
    INFO(file.filename());
    std::cout << file.filename().string() << "\n";
    const json expected = read_json(file);
    check_case(expected, inputs, weights, at::kDouble, {1e-9, 1e-9, 1e-9}, in_double);
    check_case(expected, inputs, weights, at::kFloat, {2e-5, 5e-6, 5e-6}, in_single);
  }
  std::cout << files.size() << " cases of " << vectors_dir().string() << "\n";
  print("float64", in_double);
  print("float32", in_single);
}

TEST_CASE("an option of a case that is not understood fails aloud", "[vectors]") {
  const json config = read_json(tests_dir() / "vectors/case_llama_rope.json").at("config");
  const auto complaint = [&](const std::string& key, const json& value) {
    json changed = config;
    changed[key] = value;
    return error_of([&] { read_vector_case(changed); });
  };
  REQUIRE(complaint("sliding_window", 8).find("'sliding_window': 8 is unknown") !=
          std::string::npos);
  REQUIRE(complaint("canon_bias", true).find("'canon_bias' is true") != std::string::npos);
  REQUIRE(complaint("z_loss", "other").find("'z_loss' is \"other\"") != std::string::npos);
  json shorter = config;
  shorter.erase("nope");
  REQUIRE(error_of([&] { read_vector_case(shorter); }).find("no 'nope'") != std::string::npos);
}

}  // namespace
}  // namespace forge::tests
