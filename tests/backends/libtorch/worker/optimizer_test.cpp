// The optimizers of a whole model: against the published algorithms, over a resume, and in memory.

#include <cmath>
#include <iostream>
#include <set>

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/weights.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

config::Experiment experiment_of(const json& content, const json& trace) {
  config::Experiment experiment = config::experiment_from_json(
      {{"model", content.at("model")}, {"optimizer", trace.at("optimizer")}});
  experiment.train.precision = model::Precision::float64;
  experiment.train.grad_clip = trace.at("grad_clip");
  experiment.train.max_steps = int64_t(content.at("gradients").size());
  experiment.schedule.type = "constant";
  experiment.schedule.warmup_steps = content.at("warmup_steps");
  return experiment;
}

/// Integers of the file, which are multiples of its scale.
at::Tensor scaled(const json& integers, at::IntArrayRef shape, const json& content) {
  return tensor_of(integers, shape, at::kDouble) / content.at("scale").get<double>();
}

void run_step(libtorch::Trainer& trainer, const json& content, int64_t step) {
  for (const auto& [name, gradient] : libtorch::NamedTensors(named_gradients(trainer.model())))
    at::Tensor(gradient).copy_(
        scaled(content.at("gradients").at(step).at(name), gradient.sizes(), content));
  trainer.update(at::ones({}, trainer.model().trainable().front().options()), step);
}

void begin(libtorch::Trainer& trainer, const json& content) {
  const libtorch::NamedTensors weights = trainer.model().named_weights();
  REQUIRE(weights.size() == content.at("weights").size());
  for (const auto& [name, weight] : weights) {
    for (const json& stored : content.at("weights")) {
      if (stored.at("name") == name)
        at::Tensor(weight).copy_(scaled(stored.at("data"), weight.sizes(), content));
    }
  }
  for (at::Tensor stored : trainer.model().trainable())
    stored.mutable_grad() = at::zeros_like(stored.detach());
}

json traces() { return read_json(shared_vector_file("optimizer_traces.json")); }

TEST_CASE("optimizers follow the traces of the published algorithms", "[vectors]") {
  const json content = traces();
  REQUIRE(content.at("cases").size() == 9);
  double worst = 0;
  for (const json& trace : content.at("cases")) {
    INFO(trace.at("name"));
    libtorch::Trainer trainer(experiment_of(content, trace), test_device());
    begin(trainer, content);
    for (int64_t step = 0; step < int64_t(content.at("gradients").size()); ++step)
      run_step(trainer, content, step);
    for (const auto& [name, weight] : trainer.model().named_weights()) {
      INFO(name);
      const at::Tensor wanted = tensor_of(trace.at("final").at(name), weight.sizes(), at::kDouble);
      const double difference = largest_difference(weight, wanted);
      REQUIRE(difference < 1e-12);
      worst = std::max(worst, difference);
    }
  }
  std::cout << "largest difference of weights in optimizer_traces: " << worst << "\n";
}

TEST_CASE("the groups of the traces are those of forge", "[vectors]") {
  for (const json& weight : traces().at("weights")) {
    const std::vector<int64_t> shape = weight.at("shape");
    CHECK(schema::name_of(model::group_of(weight.at("name"), shape)) == weight.at("group"));
  }
}

/// One of each kind, with settings that are not the defaults.
std::vector<config::OptimizerConfig> optimizers() {
  config::OptimizerConfig muon;
  muon.type = "muon";
  muon.lr = 1e-2;
  muon.muon.adamw_lr = 1e-3;
  muon.weight_decay_of.norms = 0;
  config::OptimizerConfig lion;
  lion.type = "lion";
  lion.lr = 3e-4;
  lion.weight_decay_of.embeddings = 0.5;
  config::OptimizerConfig sgd;
  sgd.type = "sgd";
  sgd.lr = 0.1;
  sgd.sgd.nesterov = true;
  config::OptimizerConfig plain = sgd;
  plain.sgd = {0, false};
  return {muon, lion, sgd, plain};
}

TEST_CASE("with every optimizer a resumed job goes on bit for bit", "[worker][optimizers]") {
  for (const config::OptimizerConfig& optimizer : optimizers()) {
    INFO(optimizer.type << ", momentum " << optimizer.sgd.momentum);
    Job job;
    job.experiment.optimizer = optimizer;
    job.experiment.train.grad_clip = 1;
    const std::vector<json> straight = job.run("straight");
    job.experiment.train.checkpoint_every = 3;
    job.experiment.train.keep_checkpoints = 10;
    REQUIRE(numbers(job.run("saving")) == numbers(straight));
    for (const int64_t step : {3, 6}) {
      const std::vector<json> resumed =
          job.run("resumed", (job.run_dir("saving") / "checkpoints" / named(step)).string());
      REQUIRE(numbers(resumed) == numbers_after(straight, step));
      for (const char* file : {weights::weights_file, weights::optimizer_file}) {
        REQUIRE(hash_file(job.run_dir("resumed") / "checkpoints" / named(10) / file) ==
                hash_file(job.run_dir("straight") / "checkpoints" / named(10) / file));
      }
    }
  }
}

TEST_CASE("a checkpoint of another optimizer is refused", "[worker][optimizers]") {
  Job job;
  job.experiment.train.checkpoint_every = 5;
  job.run("adamw");
  job.experiment.optimizer.type = "lion";
  const std::string from = (job.run_dir("adamw") / "checkpoints" / named(5)).string();
  const std::string message = error_of([&] { job.run("lion", from); });
  CHECK(message.find("optimizer.type is \"lion\" and was \"adamw\"") != std::string::npos);
}

std::set<std::string> suffixes(const config::OptimizerConfig& optimizer, bool of_matrices) {
  config::Experiment experiment;
  experiment.model = small_model("ABCD", model::PositionKind::rope);
  experiment.optimizer = optimizer;
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  std::set<std::string> found;
  for (const libtorch::NamedPart& part : trainer.optimizer().named_state()) {
    const size_t dot = part.name.rfind('.');
    const auto group = model::group_of(part.name.substr(0, dot), part.shape);
    if ((group == model::WeightGroup::matrices) == of_matrices) found.insert(part.name.substr(dot));
  }
  return found;
}

TEST_CASE("a checkpoint has the moments that the optimizer reads", "[worker][optimizers]") {
  using Names = std::set<std::string>;
  const Names both = {".first_moment", ".second_moment"}, one = {".momentum"};
  CHECK(suffixes({}, true) == both);
  CHECK(suffixes({}, false) == both);
  const std::vector<config::OptimizerConfig> all = optimizers();
  CHECK(suffixes(all[0], true) == one);
  CHECK(suffixes(all[0], false) == both);
  CHECK(suffixes(all[1], true) == one);
  CHECK(suffixes(all[1], false) == one);
  CHECK(suffixes(all[2], true) == one);
  CHECK(suffixes(all[3], true).empty());
  CHECK(suffixes(all[3], false).empty());
}

TEST_CASE("an optimizer's state has the bytes that were estimated", "[worker][optimizers]") {
  for (const config::OptimizerConfig& optimizer : optimizers()) {
    for (const model::ModelConfig& model : small_variants()) {
      config::Experiment experiment;
      experiment.model = model;
      experiment.optimizer = optimizer;
      INFO(optimizer.type << " " << describe(model));
      libtorch::Trainer trainer(experiment, at::Device("cpu"));
      int64_t bytes = 0;
      for (const libtorch::NamedPart& part : trainer.optimizer().named_state())
        bytes += int64_t(part.numbers.nbytes());
      CHECK(bytes == model::training_bytes(model, experiment.training_shape()).optimizer);
    }
  }
}

TEST_CASE("every kind of model learns with every optimizer", "[worker][optimizers]") {
  for (const config::OptimizerConfig& optimizer : optimizers()) {
    for (const model::ModelConfig& model : small_variants()) {
      if (crosses_documents(model) && optimizer.type != "muon") continue;
      config::Experiment experiment;
      experiment.model = model;
      experiment.optimizer = optimizer;
      experiment.train.grad_clip = 1;
      experiment.schedule.type = "constant";
      INFO(optimizer.type << " " << describe(model));
      libtorch::Trainer trainer(experiment, at::Device("cpu"));
      libtorch::load_initial(trainer.model(), 3);
      at::manual_seed(5);
      const at::Tensor ids = at::randint(0, 29, {2, 9}, at::kInt);
      const libtorch::Batch batch{
          ids.narrow(1, 0, 8).contiguous(), ids.narrow(1, 1, 8).contiguous(), {}, 0};
      const double before = trainer.loss_alone(batch);
      for (int64_t step = 0; step < 8; ++step) trainer.step(batch, step);
      CHECK(trainer.loss_alone(batch) < before - 0.02);
    }
  }
}

/// Losses of steps on one batch. On a GPU the steps after the first few are replayed, in float32
/// and bfloat16 with its own kernels.
std::vector<double> losses_of(const config::OptimizerConfig& optimizer,
                              model::Precision precision,
                              model::Bfloat16Weights kept = model::Bfloat16Weights::none) {
  config::Experiment experiment;
  experiment.model = small_model("AC", model::PositionKind::rope);
  experiment.optimizer = optimizer;
  experiment.schedule.type = "constant";
  experiment.schedule.warmup_steps = 3;
  experiment.train.grad_clip = 1;
  experiment.train.max_steps = 20;
  experiment.train.batch_size = 2;
  experiment.train.seq_len = 24;
  experiment.train.precision = precision;
  experiment.train.bfloat16_weights = kept;
  experiment.train.deterministic = true;
  const at::Device device = test_device();
  if (device.is_cuda()) libtorch::cuda::use_own_stream(device);
  libtorch::Trainer trainer(experiment, device);
  libtorch::BatchUploader uploader(device, experiment.train.seq_len);
  libtorch::load_initial(trainer.model(), 5);
  trainer.optimizer().copy_weights();
  data::RowBatch rows;
  RandomStream random(21, 1);
  for (int i = 0; i < 2 * 24; ++i) {
    rows.inputs.push_back(static_cast<int32_t>(random.below(29)));
    rows.targets.push_back(static_cast<int32_t>(random.below(29)));
    rows.documents.push_back(0);
  }
  std::vector<double> losses;
  for (int64_t step = 0; step < experiment.train.max_steps; ++step) {
    trainer.step(uploader.upload(rows), step);
    losses.push_back(take_totals(trainer).loss);
  }
  return losses;
}

std::vector<config::OptimizerConfig> all_optimizers() {
  std::vector<config::OptimizerConfig> all = optimizers();
  all.emplace_back();
  all.back().weight_decay_of.norms = 0;
  config::OptimizerConfig original = all.front();
  original.muon.adjust_lr = config::LrAdjustment::original;
  original.muon.nesterov = false;
  all.push_back(original);
  return all;
}

/// Largest difference of two curves.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TEST_CASE("training with every optimizer in float32 follows training in float64",
          "[worker][optimizers]") {
  for (const config::OptimizerConfig& optimizer : all_optimizers()) {
    INFO(optimizer.type << ", momentum " << optimizer.sgd.momentum);
    const std::vector<double> exact = losses_of(optimizer, model::Precision::float64);
    CHECK(exact.back() < exact.front() - 0.03);
    // Muon's iterations are bfloat16 on a GPU; a sign of Lion's may turn.
    const bool is_rough = test_device().is_cuda() && optimizer.type == "muon";
    const double tolerance = is_rough ? 0.05 : optimizer.type == "lion" ? 3e-3 : 1e-4;
    CHECK(distance(losses_of(optimizer, model::Precision::float32), exact) < tolerance);
  }
}

TEST_CASE("training with every optimizer in bfloat16 gives the same bits each time",
          "[worker][optimizers]") {
  using Kept = model::Bfloat16Weights;
  std::vector<Kept> ways = {Kept::none};
  if (test_device().is_cuda()) ways = {Kept::none, Kept::master_copies, Kept::stochastic_rounding};
  for (const config::OptimizerConfig& optimizer : all_optimizers()) {
    const std::vector<double> exact = losses_of(optimizer, model::Precision::float64);
    for (const Kept kept : ways) {
      INFO(optimizer.type << ", weights " << schema::name_of(kept));
      const std::vector<double> narrow = losses_of(optimizer, model::Precision::bfloat16, kept);
      CHECK(narrow == losses_of(optimizer, model::Precision::bfloat16, kept));
      CHECK(distance(narrow, exact) < 0.1);
    }
  }
}

}  // namespace
}  // namespace forge::tests
