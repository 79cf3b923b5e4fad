// The arithmetic of core/model, which builds nothing, against the model that is built.
#include "tests/support/torch_catch.h"

#include <iostream>

#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/model/arithmetic.h"
#include "tests/backends/libtorch/model/small_models.h"

namespace forge::tests {
namespace {

/// Every variant once with the widths of a larger model, so that what is small stays small.
std::vector<config::ModelConfig> measured_variants() {
  std::vector<config::ModelConfig> variants = small_variants();
  for (config::ModelConfig& model : variants) {
    model.vocab_size = 113;
    model.hidden_size = 48;
    model.intermediate_size = 96;
    model.head_dim = 16;
    if (model.position.rope_dim) model.position.rope_dim = 8;
  }
  config::ModelConfig nope = variants.front();
  nope.qk_norm = config::QkNorm::per_head;
  nope.position.kind = config::PositionKind::nope;
  nope.num_kv_heads = nope.num_heads;
  variants.push_back(nope);
  return variants;
}

/// Part of a weight by its name alone.
model::Part part_of(const std::string& name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (has("embed_tokens")) return model::Part::embedding;
  if (has("lm_head")) return model::Part::lm_head;
  if (has("canonA")) return model::Part::canon_a;
  if (has("canonB")) return model::Part::canon_b;
  if (has("canonC")) return model::Part::canon_c;
  if (has("canonD")) return model::Part::canon_d;
  if (has("q_norm") || has("k_norm")) return model::Part::qk_norm;
  if (has("norm")) return model::Part::norm;
  return has("mlp") ? model::Part::mlp : model::Part::attention;
}

TEST_CASE("the built model has the weights that were counted, part by part", "[model]") {
  for (const config::ModelConfig& config : measured_variants()) {
    INFO(describe(config));
    const worker::LlamaCanon built(config, at::TensorOptions(at::kFloat));
    model::ParameterCounts counted;
    for (const auto& [name, weight] : built.named_weights()) {
      counted.add(part_of(name), weight.numel());
    }
    const model::ParameterCounts expected = model::count_parameters(config);
    for (size_t i = 0; i < model::part_count; ++i) {
      const auto part = static_cast<model::Part>(i);
      INFO(name_of(part));
      REQUIRE(counted.of(part) == expected.of(part));
    }
    int64_t stored = 0;
    for (const at::Tensor& weight : built.trainable()) stored += weight.numel();
    REQUIRE(stored == expected.total());
  }
}

/// Bytes that CPU tensors hold now.
int64_t held_bytes() {
  worker::reset_peak_cpu_tensor_bytes();
  return worker::peak_cpu_tensor_bytes();
}

void install_allocator_once() {
  static const bool installed = [] {
    worker::install_counting_allocator();
    return true;
  }();
  static_cast<void>(installed);
}

worker::Batch batch_of(const config::Experiment& experiment) {
  const std::vector<int64_t> shape = {experiment.train.batch_size, experiment.train.seq_len};
  worker::Batch batch{at::randint(0, experiment.model.vocab_size, shape, at::kInt),
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
  worker::Trainer trainer(experiment, at::Device("cpu"));
  worker::load_initial(trainer.model(), 3);
  measured.state = held_bytes() - empty;
  {
    const at::NoGradGuard no_grad;  // grows the rotary tables, which stay
    trainer.model().logits(at::zeros({1, experiment.train.seq_len}, at::kInt));
  }
  const int64_t before = held_bytes();
  const worker::Batch batch = batch_of(experiment);
  {
    const at::Tensor loss = trainer.model().loss(batch.inputs,
                                                 batch.documents,
                                                 batch.targets,
                                                 worker::loss_options(experiment.train.z_loss));
    // The loss comes with the gradient of the output projection, which counts as a gradient.
    const int64_t head = experiment.model.vocab_size * experiment.model.hidden_size;
    measured.activations = held_bytes() - before - head * loss.element_size();
  }
  trainer.step(batch, 0);
  measured.peak = worker::peak_cpu_tensor_bytes() - empty;
  return measured;
}

TEST_CASE("activations and the peak of a step are as large as was estimated", "[model]") {
  double worst_activations = 0, smallest_peak = 1, largest_peak = 0;
  for (const config::ModelConfig& model : measured_variants()) {
    for (const bool document_mask : {false, true}) {
      config::Experiment experiment;
      experiment.model = model;
      experiment.train.batch_size = 3;
      experiment.train.seq_len = 65;
      experiment.train.document_mask = document_mask;
      INFO(describe(model) << ", document_mask " << document_mask);
      const Measured measured = measure(experiment);
      const model::TrainingBytes expected = model::training_bytes(model, experiment.train);
      REQUIRE(measured.state == expected.weights + expected.optimizer);
      const double activations = double(measured.activations) / double(expected.activations);
      REQUIRE(activations == Approx(1).margin(0.005));
      const double peak = double(measured.peak) / double(expected.total());
      REQUIRE(peak < 1.02);
      REQUIRE(peak > 0.7);
      worst_activations = std::max(worst_activations, std::fabs(activations - 1));
      smallest_peak = std::min(smallest_peak, peak);
      largest_peak = std::max(largest_peak, peak);
    }
  }
  std::cout << "activations differ from the estimate by at most " << 100 * worst_activations
            << " %; the peak of a step is " << 100 * smallest_peak << " to " << 100 * largest_peak
            << " % of the estimate\n";
}

}  // namespace
}  // namespace forge::tests
