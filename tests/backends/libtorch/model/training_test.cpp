#include "tests/support/torch_catch.h"

#include <iostream>

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/uploader.h"
#include "backends/libtorch/worker/weights.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

at::Tensor small_model_loss(const worker::LlamaCanon& model, const worker::Batch& batch) {
  const at::Tensor logits = model.logits(batch.inputs);
  return ops::cross_entropy(logits.view({-1, logits.size(-1)}), batch.targets.view({-1}));
}

worker::Batch random_batch(int64_t rows, int64_t length, int64_t vocabulary) {
  return {at::randint(0, vocabulary, {rows, length}, at::kInt),
          at::randint(0, vocabulary, {rows, length}, at::kInt),
          {},
          0};
}

TEST_CASE("the gradient of every variant is the slope of its loss", "[model]") {
  at::manual_seed(11);
  for (const config::ModelConfig& config : small_variants()) {
    INFO(describe(config));
    worker::LlamaCanon model(config, at::TensorOptions(at::kDouble));
    worker::load_initial(model, 3);
    const worker::Batch batch = random_batch(2, 9, config.vocab_size);
    small_model_loss(model, batch).backward();
    const at::NoGradGuard no_grad;
    for (const auto& [name, gradient] : model.named_gradients()) {
      INFO(name);
      // Central difference along one random direction of this weight alone.
      const at::Tensor direction = at::randn_like(gradient);
      const double slope = (gradient * direction).sum().item<double>();
      const double h = 1e-6;
      double losses[2] = {0, 0};
      for (const auto& [weight_name, weight] : model.named_weights()) {
        if (weight_name != name) continue;
        at::Tensor(weight).add_(direction, h);
        losses[0] = small_model_loss(model, batch).item<double>();
        at::Tensor(weight).add_(direction, -2 * h);
        losses[1] = small_model_loss(model, batch).item<double>();
        at::Tensor(weight).add_(direction, h);
      }
      REQUIRE((losses[0] - losses[1]) / (2 * h) == Approx(slope).epsilon(1e-5).margin(1e-8));
    }
  }
}

TEST_CASE("a row of divided documents gives what each of them gives alone", "[model]") {
  at::manual_seed(16);
  const at::NoGradGuard no_grad;
  for (const config::ModelConfig& config : small_variants()) {
    INFO(describe(config));
    worker::LlamaCanon model(config, at::TensorOptions(at::kDouble));
    worker::load_initial(model, 3);
    const at::Tensor ids = at::randint(0, config.vocab_size, {1, 12}, at::kInt);
    const at::Tensor doc_ids = at::tensor({0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2}, at::kInt);
    const at::Tensor together = model.logits(ids, ops::divide_documents(doc_ids.view({1, 12})));
    for (const auto& [first, length] : {std::pair<int64_t, int64_t>{0, 5}, {5, 1}, {6, 6}}) {
      const at::Tensor alone = model.logits(ids.narrow(1, first, length));
      REQUIRE(largest_difference(together.narrow(1, first, length), alone) < 1e-12);
    }
  }
}

/// Rows of random ids, divided every `document_length` tokens.
data::RowBatch divided_rows(const config::Experiment& experiment, int document_length) {
  data::RowBatch rows;
  for (int row = 0; row < experiment.train.batch_size; ++row) {
    for (int t = 0; t < experiment.train.seq_len; ++t) {
      rows.inputs.push_back(at::randint(0, experiment.model.vocab_size, {1}).item<int>());
      rows.targets.push_back(at::randint(0, experiment.model.vocab_size, {1}).item<int>());
      rows.documents.push_back(t / document_length);
    }
  }
  return rows;
}

// On a GPU the steps are recorded, and again when there is no more room for the documents.
TEST_CASE("a step of any number of documents is the step in parts", "[model]") {
  at::manual_seed(17);
  config::Experiment experiment;
  experiment.model = small_model("ABCD", config::PositionKind::rope);
  experiment.model.hidden_size = 32;
  experiment.model.head_dim = 8;
  experiment.model.qk_norm = config::QkNorm::per_head;
  experiment.train.batch_size = 6;
  experiment.train.seq_len = 64;
  experiment.train.document_mask = true;
  experiment.train.precision = config::Precision::bfloat16;
  const at::Device device = test_device();
  if (device.is_cuda()) worker::cuda::use_own_stream(0);
  worker::Trainer whole(experiment, device), parts(experiment, device);
  worker::Uploader uploader(device, experiment.train.seq_len);
  for (worker::Trainer* trainer : {&whole, &parts}) worker::load_initial(trainer->model(), 42);
  for (int64_t step = 0; step < 14; ++step) {
    INFO("step " << step);
    const worker::Batch batch = uploader.upload(divided_rows(experiment, step < 7 ? 20 : 1));
    whole.step(batch, step);
    const at::Tensor loss = parts.loss(batch);
    parts.backward(loss);
    parts.update(loss, step);
    const worker::StepTotals expected = whole.optimizer().take_totals();
    const worker::StepTotals found = parts.optimizer().take_totals();
    const double tolerance = device.is_cuda() ? 0.01 : 0;
    REQUIRE(std::fabs(found.loss - expected.loss) <= tolerance);
    REQUIRE(std::fabs(found.gradient_norm - expected.gradient_norm) <= tolerance);
  }
}

TEST_CASE("every variant can learn one batch by heart", "[model]") {
  at::manual_seed(12);
  for (const config::ModelConfig& model : small_variants()) {
    INFO(describe(model));
    config::Experiment experiment;
    experiment.model = model;
    experiment.optimizer.lr = 3e-2;
    experiment.optimizer.weight_decay = 0;
    experiment.schedule.type = "constant";
    worker::Trainer trainer(experiment, at::Device("cpu"));
    worker::load_initial(trainer.model(), 5);
    // One row each of different tokens, so that a model without positions can tell them apart too.
    worker::Batch batch;
    batch.inputs = at::stack({at::randperm(29).narrow(0, 0, 12), at::randperm(29).narrow(0, 0, 12)})
                       .to(at::kInt);
    batch.targets = at::randint(0, 29, {2, 12}, at::kInt);
    double first = 0, last = 0;
    for (int64_t step = 0; step < 120; ++step) {
      trainer.step(batch, step);
      last = trainer.optimizer().take_totals().loss;
      if (step == 0) first = last;
    }
    REQUIRE(first > 1.5);
    REQUIRE(last < 0.1);
  }
}

/// Losses of the first steps on one batch, with documents in its rows.
std::vector<double> loss_curve(const config::ModelConfig& model, config::Precision precision) {
  config::Experiment experiment;
  experiment.model = model;
  experiment.train.precision = precision;
  experiment.optimizer.lr = 3e-3;
  experiment.schedule.type = "constant";
  worker::Trainer trainer(experiment, at::Device("cpu"));
  worker::load_initial(trainer.model(), 5);
  at::manual_seed(18);
  worker::Batch batch = random_batch(3, 70, model.vocab_size);
  batch.documents =
      ops::divide_documents(at::arange(70, at::kInt).floor_divide(31).to(at::kInt).repeat({3, 1}));
  std::vector<double> losses;
  for (int64_t step = 0; step < 40; ++step) {
    trainer.step(batch, step);
    losses.push_back(trainer.optimizer().take_totals().loss);
  }
  return losses;
}

TEST_CASE("training in bfloat16 follows training in float32, with the same bits each time",
          "[model]") {
  for (const config::ModelConfig& model : small_variants()) {
    INFO(describe(model));
    const std::vector<double> wide = loss_curve(model, config::Precision::float32);
    const std::vector<double> narrow = loss_curve(model, config::Precision::bfloat16);
    REQUIRE(narrow != wide);
    REQUIRE(narrow == loss_curve(model, config::Precision::bfloat16));
    REQUIRE(wide.back() < 0.9 * wide.front());
    for (size_t i = 0; i < wide.size(); ++i) REQUIRE(narrow[i] == Approx(wide[i]).epsilon(0.01));
  }
}

/// Weights of the reference at the start of its traces.
void set_trainer_weights(worker::Trainer& trainer, const nlohmann::json& values) {
  for (const auto& [name, weight] : trainer.model().named_weights()) {
    const std::string stored = vector_weight_name(name, trainer.model().config());
    at::Tensor(weight).copy_(float32_tensor_of(values.at(stored), weight.sizes(), at::kDouble));
  }
}

config::Experiment experiment_of(const nlohmann::json& trace) {
  config::Experiment experiment;
  const VectorCase read = read_vector_case(trace.at("config"));
  experiment.model = read.model;
  experiment.train.z_loss = read.z_loss;
  experiment.train.precision = config::Precision::float64;
  const nlohmann::json& optimizer = trace.at("optimizer");
  REQUIRE(optimizer.at("kind") == "AdamW");
  experiment.optimizer.lr = optimizer.at("lr");
  experiment.optimizer.betas = optimizer.at("betas").get<std::vector<double>>();
  experiment.optimizer.eps = optimizer.at("eps");
  experiment.optimizer.weight_decay = optimizer.at("weight_decay");
  experiment.train.grad_clip =
      optimizer.at("clip").is_null() ? 0 : optimizer.at("clip").get<double>();
  experiment.schedule.type = "cosine";
  experiment.schedule.warmup_steps = 5;
  experiment.schedule.lr_min_ratio = 0.1;
  experiment.train.max_steps = 20;
  return experiment;
}

void check_final_weights(worker::Trainer& trainer, const nlohmann::json& trace, double& worst) {
  for (const auto& [name, weight] : trainer.model().named_weights()) {
    INFO(name);
    const auto& final_values = trace.at("final").at(
        trace.at("final").contains(name) ? name
                                         : vector_weight_name(name, trainer.model().config()));
    const int64_t count = std::min<int64_t>(8, weight.numel());
    double difference =
        largest_difference(weight.flatten().narrow(0, 0, count),
                           tensor_of(final_values.at("head8"), {count}, at::kDouble));
    difference = std::max(
        difference, std::fabs(weight.norm().item<double>() - final_values.at("l2").get<double>()));
    if (trace.at("final_canon").contains(name)) {
      const auto& whole = trace.at("final_canon").at(name);
      const at::Tensor expected =
          tensor_of(whole.is_object() ? whole.at("data") : whole, weight.sizes(), at::kDouble);
      difference = std::max(difference, largest_difference(weight, expected));
    }
    REQUIRE(difference < 1e-6);
    worst = std::max(worst, difference);
  }
}

TEST_CASE("AdamW follows the reference trace of losses, gradient norms and weights", "[vectors]") {
  const nlohmann::json content = read_json(shared_vector_file("adamw_trace.json"));
  REQUIRE_FALSE(content.at("cases").empty());
  const nlohmann::json weights = read_json(shared_vector_file("llama_weights.json")).at("data");
  double worst_step = 0, worst_weight = 0;
  for (const auto& trace : content.at("cases")) {
    INFO(trace.at("name"));
    const config::Experiment experiment = experiment_of(trace);
    worker::Trainer trainer(experiment, test_device());
    set_trainer_weights(trainer, weights);
    const auto& batches = trace.at("batches");
    for (const auto& expected : trace.at("trace")) {
      const int64_t step = expected.at("step");
      INFO("step " << step);
      const auto& rows = batches.at(step % batches.size());
      const int64_t batch = rows.size(), length = rows.at(0).size();
      const at::Tensor ids = tensor_of(rows, {batch, length}, at::kInt);
      const double rate_difference =
          trainer.optimizer().learning_rate(step) - expected.at("lr").get<double>();
      REQUIRE(std::fabs(rate_difference) < 1e-15);
      const at::Tensor logits = trainer.model().logits(ids).narrow(1, 0, length - 1);
      const at::Tensor loss = ops::cross_entropy(logits.reshape({-1, experiment.model.vocab_size}),
                                                 ids.narrow(1, 1, length - 1).reshape({-1}),
                                                 worker::loss_options(experiment.train.z_loss));
      trainer.backward(loss);
      trainer.update(loss, step);
      const worker::StepTotals found = trainer.optimizer().take_totals();
      const double difference =
          std::max(std::fabs(found.loss - expected.at("loss").get<double>()),
                   std::fabs(found.gradient_norm - expected.at("grad_norm").get<double>()));
      REQUIRE(difference < 1e-6);
      worst_step = std::max(worst_step, difference);
    }
    check_final_weights(trainer, trace, worst_weight);
  }
  std::cout << "largest differences of adamw_trace: loss and gradient norm " << worst_step
            << ", weights " << worst_weight << "\n";
}

}  // namespace
}  // namespace forge::tests
