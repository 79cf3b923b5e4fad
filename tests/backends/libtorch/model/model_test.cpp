// The whole model against reference vectors computed in float64 by an independent implementation:
// every case file of the folder, in double and in single precision.

#include <iostream>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/model/cost.h"
#include "core/model/kinds.h"
#include "core/model/parameters.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/linear_vectors.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"
#include "tests/support/vector_case.h"

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

void check_gradients(const libtorch::Model& model,
                     const json& expected,
                     double tolerance,
                     double& worst) {
  const libtorch::NamedTensors gradients = named_gradients(model);
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
  const model::ModelConfig& config = read.model;
  REQUIRE(model::parameter_count(config) == expected.at("n_params"));
  const libtorch::Model model(config, at::TensorOptions(test_device()).dtype(type));
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
  // The vectors have the stream after each layer, that is after each second block.
  REQUIRE(residual_stream.size() == 2 * expected.at("hidden_l2").size());
  for (size_t i = 0; i < residual_stream.size() / 2; ++i) {
    const double norm = residual_stream[2 * i + 1].norm().item<double>();
    REQUIRE(std::fabs(norm - expected.at("hidden_l2").at(i).get<double>()) <=
            tolerance.logits * 50);
  }
  const at::Tensor loss =
      ops::cross_entropy_reference(logits.narrow(1, 0, length - 1).reshape({-1, config.vocab_size}),
                                   labels.narrow(1, 1, length - 1).reshape({-1}),
                                   libtorch::loss_options(read.z_loss));
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
  if (files.empty() && !linear_cases().empty()) {
    WARN("no vectors of Llamas here: nothing is compared");
    return;
  }
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

// The arithmetic of core/model, which builds nothing, against the model that is built.

namespace forge::tests {
namespace {

/// Every variant once with the widths of a larger model, so that what is small stays small.
std::vector<model::ModelConfig> measured_variants() {
  std::vector<model::ModelConfig> variants;
  for (const model::ModelConfig& small : small_variants()) {
    config::Experiment experiment;
    experiment.model = small;
    json config = config::to_json(experiment);
    json& model = config["model"];
    model["vocab_size"] = 113;
    model["hidden_size"] = 96;
    model["mlp"]["intermediate_size"] = 96;
    if (model.contains("attention")) {
      json& attention = model["attention"];
      attention["head_dim"] = 16;
      if (!attention["position"]["rope_dim"].is_null()) attention["position"]["rope_dim"] = 8;
    }
    experiment = config::experiment_from_json(config);
    model::complete_model(experiment.model);
    variants.push_back(experiment.model);
  }
  model::ModelConfig nope = variants.front();
  nope.attention.qk_norm = model::QkNorm::per_head;
  nope.attention.position.kind = model::PositionKind::nope;
  nope.attention.num_kv_heads = nope.attention.num_heads;
  variants.push_back(nope);
  return variants;
}

/// Part of a weight by its name alone.
std::string part_named(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("embed_tokens")) return "embedding";
  if (has("lm_head")) return "lm_head";
  if (has("canonA")) return "canon_a";
  if (has("canonB")) return "canon_b";
  if (has("canonC")) return "canon_c";
  if (has("canonD")) return "canon_d";
  if (has("conv1d")) return "short_conv";
  if (has("q_norm") || has("k_norm")) return "qk_norm";
  if (has("norm")) return "norm";
  for (const model::BlockKind* mixer : model::mixer_kinds()) {
    if (has(("." + std::string(mixer->name) + ".").c_str())) return mixer->name;
  }
  return has("mlp") ? "mlp" : "attention";
}

TEST_CASE("the built model has the weights that were counted, part by part", "[model]") {
  for (const model::ModelConfig& config : measured_variants()) {
    INFO(describe(config));
    const libtorch::Model built(config, at::TensorOptions(at::kFloat));
    model::ParameterCounts counted;
    for (const auto& [name, weight] : built.named_weights()) {
      counted.add(part_named(name), weight.numel());
    }
    const model::ParameterCounts expected = model::count_parameters(config);
    REQUIRE(counted.parts().size() == expected.parts().size());
    for (const auto& [part, count] : expected.parts()) {
      INFO(part);
      REQUIRE(counted.of(part) == count);
    }
    int64_t stored = 0;
    for (const at::Tensor& weight : built.trainable()) stored += weight.numel();
    REQUIRE(stored == expected.total());
  }
}

/// Bytes that CPU tensors hold now.
int64_t held_bytes() {
  libtorch::reset_peak_memory(at::kCPU);
  return libtorch::peak_memory_bytes(at::kCPU);
}

libtorch::Batch batch_of(const config::Experiment& experiment) {
  const std::vector<int64_t> shape = {experiment.train.batch_size, experiment.train.seq_len};
  libtorch::Batch batch{at::randint(0, experiment.model.vocab_size, shape, at::kInt),
                        at::randint(0, experiment.model.vocab_size, shape, at::kInt),
                        {},
                        0};
  if (experiment.train.document_mask) {
    const at::Tensor begins = at::randint(0, 9, shape, at::kInt).eq(0);
    batch.documents = ops::divide_documents(begins.cumsum(1).to(at::kInt));
  }
  return batch;
}

struct Measured {
  int64_t state = 0;        ///< weights and moments
  int64_t activations = 0;  ///< between forward and backward, the batch included
  int64_t peak = 0;         ///< of a whole step
};

Measured measure(const config::Experiment& experiment) {
  install_allocator_once();
  Measured measured;
  const int64_t empty = held_bytes();
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  libtorch::load_initial(trainer.model(), 3);
  measured.state = held_bytes() - empty;
  {
    const at::NoGradGuard no_grad;  // grows the rotary tables, which stay
    trainer.model().logits(at::zeros({1, experiment.train.seq_len}, at::kInt));
  }
  const int64_t before = held_bytes();
  const libtorch::Batch batch = batch_of(experiment);
  {
    const at::Tensor loss = trainer.model().loss(batch.inputs,
                                                 batch.documents,
                                                 batch.targets,
                                                 libtorch::loss_options(experiment.train.z_loss));
    // The loss comes with the gradient of the output projection, which counts as a gradient.
    const int64_t head = experiment.model.vocab_size * experiment.model.hidden_size;
    measured.activations = held_bytes() - before - head * loss.element_size();
  }
  trainer.step(batch, 0);
  measured.peak = libtorch::peak_memory_bytes(at::kCPU) - empty;
  return measured;
}

TEST_CASE("activations and the peak of a step are as large as was estimated", "[model]") {
  double worst_activations = 0, smallest_peak = 1, largest_peak = 0;
  for (const model::ModelConfig& model : measured_variants()) {
    for (const bool document_mask : {false, true}) {
      if (document_mask && crosses_documents(model)) continue;
      config::Experiment experiment;
      experiment.model = model;
      experiment.train.batch_size = 3;
      experiment.train.seq_len = 65;
      experiment.train.document_mask = document_mask;
      for (const model::Recompute recompute :
           {model::Recompute::none, model::Recompute::mlp, model::Recompute::blocks}) {
        experiment.train.recompute = recompute;
        INFO(describe(model) << ", document_mask " << document_mask << ", recompute "
                             << schema::name_of(recompute));
        const Measured measured = measure(experiment);
        const model::TrainingBytes expected =
            model::training_bytes(model, experiment.train.shape());
        REQUIRE(measured.state == expected.weights + expected.optimizer);
        const double activations = double(measured.activations) / double(expected.activations);
        REQUIRE(activations == Approx(1).margin(0.005));
        const double peak = double(measured.peak) / double(expected.total());
        // Work space of a linear mixer stands out where little else is kept.
        const bool is_little = recompute == model::Recompute::blocks && crosses_documents(model);
        REQUIRE(peak < (is_little ? 1.1 : 1.02));
        REQUIRE(peak > 0.7);
        worst_activations = std::max(worst_activations, std::fabs(activations - 1));
        smallest_peak = std::min(smallest_peak, peak);
        largest_peak = std::max(largest_peak, peak);
      }
    }
  }
  std::cout << "activations differ from the estimate by at most " << 100 * worst_activations
            << " %; the peak of a step is " << 100 * smallest_peak << " to " << 100 * largest_peak
            << " % of the estimate\n";
}

}  // namespace
}  // namespace forge::tests
