// What is computed again in the backward pass changes memory and no bit.

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

using model::Recompute;

/// Rows with documents where the model keeps them apart.
libtorch::Batch batch_for(const config::Experiment& experiment) {
  const std::vector<int64_t> shape = {experiment.train.batch_size, experiment.train.seq_len};
  libtorch::Batch batch{at::randint(0, experiment.model.vocab_size, shape, at::kInt),
                        at::randint(0, experiment.model.vocab_size, shape, at::kInt),
                        {},
                        0};
  if (!crosses_documents(experiment.model)) {
    const at::Tensor begins = at::randint(0, 9, shape, at::kInt).eq(0);
    batch.documents = ops::divide_documents(begins.cumsum(1).to(at::kInt));
  }
  return batch;
}

/// What some steps have come to.
struct Trained {
  std::vector<double> losses, norms;
  libtorch::NamedTensors gradients;  ///< of the last step, before they are clipped
  libtorch::NamedTensors weights;
};

Trained trained(config::Experiment experiment, Recompute recompute) {
  experiment.train.recompute = recompute;
  at::manual_seed(21);
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  libtorch::load_initial(trainer.model(), 5);
  trainer.model().round_matrices();
  Trained result;
  for (int64_t step = 0; step < 3; ++step) {
    trainer.step(batch_for(experiment), step);
    const libtorch::StepTotals totals = take_totals(trainer);
    result.losses.push_back(totals.loss);
    result.norms.push_back(totals.gradient_norm);
  }
  trainer.backward(trainer.loss(batch_for(experiment)));
  result.gradients = named_gradients(trainer.model());
  result.weights = trainer.model().named_weights();
  return result;
}

void require_equal(const libtorch::NamedTensors& found, const libtorch::NamedTensors& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO(expected[i].first);
    REQUIRE(found[i].first == expected[i].first);
    REQUIRE(at::equal(found[i].second, expected[i].second));
  }
}

void require_same_bits(const config::Experiment& experiment) {
  const Trained expected = trained(experiment, Recompute::none);
  REQUIRE(expected.losses[0] != expected.losses[2]);
  REQUIRE(expected.norms[2] > 0);
  for (const Recompute recompute : {Recompute::mlp, Recompute::blocks}) {
    INFO("recompute " << schema::name_of(recompute));
    const Trained found = trained(experiment, recompute);
    REQUIRE(found.losses == expected.losses);
    REQUIRE(found.norms == expected.norms);
    require_equal(found.gradients, expected.gradients);
    require_equal(found.weights, expected.weights);
  }
}

config::Experiment small_experiment_of(const model::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  experiment.train.batch_size = 3;
  experiment.train.seq_len = 21;
  experiment.train.grad_clip = 1;
  experiment.optimizer.lr = 1e-2;
  experiment.schedule.type = "constant";
  return experiment;
}

TEST_CASE("every variant has the same bits whatever is computed again", "[model][recompute]") {
  for (const model::ModelConfig& model : small_variants()) {
    INFO(describe(model));
    config::Experiment experiment = small_experiment_of(model);
    for (const model::Precision precision :
         {model::Precision::float32, model::Precision::bfloat16}) {
      INFO(schema::name_of(precision));
      experiment.train.precision = precision;
      require_same_bits(experiment);
    }
  }
}

TEST_CASE("micro-batches have the same bits whatever is computed again", "[model][recompute]") {
  config::Experiment experiment =
      small_experiment_of(small_model("ABCD", model::PositionKind::rope));
  experiment.train.micro_batch_size = 2;
  require_same_bits(experiment);
}

/// Peak bytes of a step beyond what is there before it.
int64_t peak_of_step(config::Experiment experiment, Recompute recompute) {
  experiment.train.recompute = recompute;
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  libtorch::load_initial(trainer.model(), 5);
  const libtorch::Batch batch = batch_for(experiment);
  trainer.step(batch, 0);
  libtorch::reset_peak_memory(at::kCPU);
  const int64_t before = libtorch::peak_memory_bytes(at::kCPU);
  trainer.step(batch, 1);
  return libtorch::peak_memory_bytes(at::kCPU) - before;
}

TEST_CASE("a step that is computed again in parts fits where it did not before",
          "[model][recompute]") {
  install_allocator_once();
  config::Experiment experiment =
      small_experiment_of(small_model("ABCD", model::PositionKind::rope));
  experiment.model.num_layers = 8;
  experiment.train.batch_size = 8;
  experiment.train.seq_len = 64;
  const int64_t none = peak_of_step(experiment, Recompute::none);
  const int64_t mlp = peak_of_step(experiment, Recompute::mlp);
  const int64_t blocks = peak_of_step(experiment, Recompute::blocks);
  REQUIRE(mlp < 0.8 * double(none));
  REQUIRE(blocks < 0.4 * double(none));
}

TEST_CASE("memory that runs out while a layer is computed again is a shortage as any other",
          "[model][recompute]") {
  install_allocator_once();
  config::Experiment experiment =
      small_experiment_of(small_model("ABCD", model::PositionKind::rope));
  experiment.train.batch_size = 8;
  experiment.train.seq_len = 64;
  experiment.train.recompute = Recompute::blocks;
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  libtorch::load_initial(trainer.model(), 5);
  const libtorch::Batch batch = batch_for(experiment);
  const auto gradients = [&] { trainer.backward(trainer.loss(batch)); };
  const auto held_without_gradients = [&] {
    trainer.optimizer().zero_gradients();
    libtorch::reset_peak_memory(at::kCPU);
    return libtorch::peak_memory_bytes(at::kCPU);
  };
  gradients();  // grows the rotary tables, which stay
  const int64_t held = held_without_gradients();
  gradients();
  // A layer with its gradients is the most that there is at once.
  libtorch::limit_memory(at::kCPU, libtorch::peak_memory_bytes(at::kCPU) - 1);
  const auto shortage = libtorch::run_or_out_of_memory(gradients);
  libtorch::limit_memory(at::kCPU, 0);
  REQUIRE(shortage);
  REQUIRE(shortage->find("out of memory") != std::string::npos);
  REQUIRE(held_without_gradients() == held);
}

}  // namespace
}  // namespace forge::tests
