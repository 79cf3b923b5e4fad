#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

std::string describe(const config::ModelConfig& model) {
  return "canon '" + model.canon.set + "', position " + std::to_string(int(model.position.kind)) +
         ", qk_norm " + std::to_string(int(model.qk_norm));
}

at::Tensor loss_of(const worker::LlamaCanon& model, const worker::Batch& batch) {
  const at::Tensor logits = model.logits(batch.inputs);
  return ops::cross_entropy(logits.view({-1, logits.size(-1)}), batch.targets.view({-1}));
}

worker::Batch random_batch(int64_t rows, int64_t length, int64_t vocabulary) {
  return {at::randint(0, vocabulary, {rows, length}, at::kInt),
          at::randint(0, vocabulary, {rows, length}, at::kInt)};
}

TEST_CASE("the gradient of every variant is the slope of its loss", "[model]") {
  at::manual_seed(11);
  for (const config::ModelConfig& config : small_variants()) {
    INFO(describe(config));
    worker::LlamaCanon model(config, at::TensorOptions(at::kDouble));
    worker::load_initial(model, 3);
    const worker::Batch batch = random_batch(2, 9, config.vocab_size);
    loss_of(model, batch).backward();
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
        losses[0] = loss_of(model, batch).item<double>();
        at::Tensor(weight).add_(direction, -2 * h);
        losses[1] = loss_of(model, batch).item<double>();
        at::Tensor(weight).add_(direction, h);
      }
      REQUIRE((losses[0] - losses[1]) / (2 * h) == Approx(slope).epsilon(1e-5).margin(1e-8));
    }
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
      last = trainer.step(batch, step).loss.item<double>();
      if (step == 0) first = last;
    }
    REQUIRE(first > 1.5);
    REQUIRE(last < 0.1);
  }
}

TEST_CASE("AdamW follows the reference trace of losses and gradient norms", "[vectors]") {
  for (const auto& file : vector_files("adamw_trace")) {
    const nlohmann::json weights = read_json(vectors_dir() / "llama_weights.json");
    const nlohmann::json content = read_json(file);
    for (const auto& c : content.at("cases")) {
      INFO(c.at("name"));
      config::Experiment experiment;
      const auto& m = c.at("config");
      experiment.model = small_model(
          m.at("canon_set"),
          m.at("nope") == true ? config::PositionKind::nope : config::PositionKind::rope);
      config::ModelConfig& model = experiment.model;
      model.vocab_size = m.at("vocab_size");
      model.hidden_size = m.at("hidden_size");
      model.intermediate_size = m.at("intermediate_size");
      model.head_dim = m.at("head_dim");
      model.rms_norm_eps = m.at("rms_norm_eps");
      model.qk_norm = m.at("qk_norm") == true ? config::QkNorm::full : config::QkNorm::none;
      const auto& o = c.at("optimizer");
      experiment.optimizer.betas = o.at("betas").get<std::vector<double>>();
      experiment.optimizer.eps = o.at("eps");
      experiment.optimizer.weight_decay = o.at("weight_decay");
      experiment.train.precision = config::Precision::float64;
      const double clip = o.at("clip").is_null() ? 0 : o.at("clip").get<double>();

      worker::Trainer trainer(experiment, test_device());
      for (const auto& [name, weight] : trainer.model().named_weights()) {
        at::Tensor(weight).copy_(
            float32_tensor_of(weights.at("data").at(name), weight.sizes(), at::kDouble));
      }
      const auto& batches = c.at("batches");
      for (const auto& expected : c.at("trace")) {
        const int64_t step = expected.at("step");
        const auto& rows = batches.at(step % batches.size());
        const int64_t batch = rows.size(), length = rows.at(0).size();
        const at::Tensor ids = tensor_of(rows, {batch, length}, at::kInt);
        trainer.optimizer().zero_gradients();
        const at::Tensor logits = trainer.model().logits(ids).narrow(1, 0, length - 1);
        const at::Tensor loss = ops::cross_entropy(logits.reshape({-1, model.vocab_size}),
                                                   ids.narrow(1, 1, length - 1).reshape({-1}));
        loss.backward();
        const at::Tensor norm = trainer.optimizer().gradient_norm(clip);
        trainer.optimizer().step(step + 1, expected.at("lr"));
        INFO("step " << step);
        REQUIRE(std::fabs(loss.item<double>() - expected.at("loss").get<double>()) < 1e-6);
        REQUIRE(std::fabs(norm.item<double>() - expected.at("grad_norm").get<double>()) < 1e-6);
      }
      for (const auto& [name, weight] : trainer.model().named_weights()) {
        INFO(name);
        const auto& final_values = c.at("final").at(name);
        REQUIRE(std::fabs(weight.norm().item<double>() - final_values.at("l2").get<double>()) <
                1e-6);
        const int64_t count = std::min<int64_t>(8, weight.numel());
        REQUIRE(largest_difference(weight.flatten().narrow(0, 0, count),
                                   tensor_of(final_values.at("head8"), {count}, at::kDouble)) <
                1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace forge::tests
