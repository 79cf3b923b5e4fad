#include <iostream>

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/model/weights/checkpoint.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

at::Tensor small_model_loss(const libtorch::Model& model, const libtorch::Batch& batch) {
  const at::Tensor logits = model.logits(batch.inputs);
  return ops::cross_entropy_reference(logits.view({-1, logits.size(-1)}), batch.targets.view({-1}));
}

libtorch::Batch random_batch(int64_t rows, int64_t length, int64_t vocabulary) {
  return {at::randint(0, vocabulary, {rows, length}, at::kInt),
          at::randint(0, vocabulary, {rows, length}, at::kInt),
          {},
          0};
}

TEST_CASE("the gradient of every variant is the slope of its loss", "[model]") {
  at::manual_seed(11);
  for (const model::ModelConfig& config : small_variants()) {
    INFO(describe(config));
    libtorch::Model model(config, at::TensorOptions(at::kDouble));
    libtorch::load_initial(model, 3);
    const libtorch::Batch batch = random_batch(2, 9, config.vocab_size);
    small_model_loss(model, batch).backward();
    const at::NoGradGuard no_grad;
    for (const auto& [name, gradient] : named_gradients(model)) {
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
  for (const model::ModelConfig& config : small_variants()) {
    if (crosses_documents(config)) continue;
    INFO(describe(config));
    libtorch::Model model(config, at::TensorOptions(at::kDouble));
    libtorch::load_initial(model, 3);
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
  experiment.model = small_model("ABCD", model::PositionKind::rope);
  experiment.model.hidden_size = 32;
  experiment.model.attention.head_dim = 8;
  experiment.model.attention.qk_norm = model::QkNorm::per_head;
  experiment.train.batch_size = 6;
  experiment.train.seq_len = 64;
  experiment.train.document_mask = true;
  experiment.train.precision = model::Precision::bfloat16;
  const at::Device device = test_device();
  if (device.is_cuda()) libtorch::cuda::use_own_stream(device);
  libtorch::Trainer whole(experiment, device), parts(experiment, device);
  libtorch::BatchUploader uploader(device, experiment.train.seq_len);
  for (libtorch::Trainer* trainer : {&whole, &parts}) libtorch::load_initial(trainer->model(), 42);
  for (int64_t step = 0; step < 14; ++step) {
    INFO("step " << step);
    const libtorch::Batch batch = uploader.upload(divided_rows(experiment, step < 7 ? 20 : 1));
    whole.step(batch, step);
    const at::Tensor loss = parts.loss(batch);
    parts.backward(loss);
    parts.update(loss, step);
    const libtorch::StepTotals expected = take_totals(whole);
    const libtorch::StepTotals found = take_totals(parts);
    const double tolerance = device.is_cuda() ? 0.01 : 0;
    REQUIRE(std::fabs(found.loss - expected.loss) <= tolerance);
    REQUIRE(std::fabs(found.gradient_norm - expected.gradient_norm) <= tolerance);
  }
}

TEST_CASE("a step leaves no gradients behind", "[model]") {
  config::Experiment experiment;
  experiment.model = small_model("ABCD", model::PositionKind::rope);
  experiment.train.batch_size = 2;
  experiment.train.seq_len = 8;
  const at::Device device = test_device();
  if (device.is_cuda()) libtorch::cuda::use_own_stream(device);
  libtorch::Trainer trainer(experiment, device);
  libtorch::load_initial(trainer.model(), 42);
  libtorch::BatchUploader uploader(device, experiment.train.seq_len);
  for (int64_t step = 0; step < 5; ++step) {  // on a GPU the fourth is recorded
    trainer.step(uploader.upload(divided_rows(experiment, 8)), step);
    for (const at::Tensor& weight : trainer.model().trainable()) REQUIRE(!weight.grad().defined());
  }
}

TEST_CASE("every variant can learn one batch by heart", "[model]") {
  at::manual_seed(12);
  for (const model::ModelConfig& model : small_variants()) {
    INFO(describe(model));
    config::Experiment experiment;
    experiment.model = model;
    experiment.optimizer.lr = 3e-2;
    experiment.optimizer.weight_decay = 0;
    experiment.schedule.type = "constant";
    libtorch::Trainer trainer(experiment, at::Device("cpu"));
    libtorch::load_initial(trainer.model(), 5);
    // One row each of different tokens, so that a model without positions can tell them apart too.
    libtorch::Batch batch;
    batch.inputs = at::stack({at::randperm(29).narrow(0, 0, 12), at::randperm(29).narrow(0, 0, 12)})
                       .to(at::kInt);
    batch.targets = at::randint(0, 29, {2, 12}, at::kInt);
    double first = 0, last = 0;
    for (int64_t step = 0; step < 120; ++step) {
      trainer.step(batch, step);
      last = take_totals(trainer).loss;
      if (step == 0) first = last;
    }
    REQUIRE(first > 1.5);
    // With a window of 1 no token sees another: a token of both rows with two targets stays a
    // guess.
    const bool sees_others = model.attention.window.value_or(2) > 1;
    REQUIRE(last < (sees_others ? 0.1 : 0.3));
  }
}

/// Losses of the first steps on one batch, with documents in its rows where the model can have
/// them.
std::vector<double> loss_curve(const model::ModelConfig& model, model::Precision precision) {
  config::Experiment experiment;
  experiment.model = model;
  experiment.train.precision = precision;
  experiment.optimizer.lr = 3e-3;
  experiment.schedule.type = "constant";
  libtorch::Trainer trainer(experiment, at::Device("cpu"));
  libtorch::load_initial(trainer.model(), 5);
  at::manual_seed(18);
  libtorch::Batch batch = random_batch(3, 70, model.vocab_size);
  if (!crosses_documents(model)) {
    const at::Tensor ids = at::arange(70, at::kInt).floor_divide(31).to(at::kInt);
    batch.documents = ops::divide_documents(ids.repeat({3, 1}));
  }
  std::vector<double> losses;
  for (int64_t step = 0; step < 40; ++step) {
    trainer.step(batch, step);
    losses.push_back(take_totals(trainer).loss);
  }
  return losses;
}

TEST_CASE("training in bfloat16 follows training in float32, with the same bits each time",
          "[model]") {
  for (const model::ModelConfig& model : small_variants()) {
    INFO(describe(model));
    const std::vector<double> wide = loss_curve(model, model::Precision::float32);
    const std::vector<double> narrow = loss_curve(model, model::Precision::bfloat16);
    REQUIRE(narrow != wide);
    REQUIRE(narrow == loss_curve(model, model::Precision::bfloat16));
    REQUIRE(wide.back() < 0.9 * wide.front());
    // Rounding moves the two apart as they go: by 1.3 % after forty steps on a CPU with products of
    // bfloat16, by less on one without.
    for (size_t i = 0; i < wide.size(); ++i) REQUIRE(narrow[i] == Approx(wide[i]).epsilon(0.03));
  }
}

/// Weights of the reference at the start of its traces.
void set_trainer_weights(libtorch::Trainer& trainer, const nlohmann::json& values) {
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
  experiment.train.precision = model::Precision::float64;
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

void check_final_weights(libtorch::Trainer& trainer, const nlohmann::json& trace, double& worst) {
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
    libtorch::Trainer trainer(experiment, test_device());
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
      const at::Tensor loss =
          ops::cross_entropy_reference(logits.reshape({-1, experiment.model.vocab_size}),
                                       ids.narrow(1, 1, length - 1).reshape({-1}),
                                       libtorch::loss_options(experiment.train.z_loss));
      trainer.backward(loss);
      trainer.update(loss, step);
      const libtorch::StepTotals found = take_totals(trainer);
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

/// For as long as it lives, tensors on the CPU may hold no more bytes.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes) { libtorch::limit_memory(at::kCPU, bytes); }
  ~MemoryLimit() { libtorch::limit_memory(at::kCPU, 0); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Most bytes that tensors held during the work, together with what they held before.
template <class Work>
int64_t peak_of(const Work& work) {
  libtorch::reset_peak_memory(at::kCPU);
  work();
  return libtorch::peak_memory_bytes(at::kCPU);
}

void count_tensors() {
  static const bool installed = [] {
    libtorch::install_counting_allocator();
    return true;
  }();
  REQUIRE(installed);
}

/// Rows of random ids in documents, of which the first rows are mostly not scored.
data::RowBatch uneven_rows(const config::Experiment& experiment) {
  data::RowBatch rows;
  RandomStream random(11, 1);
  const auto vocabulary = static_cast<uint32_t>(experiment.model.vocab_size);
  for (int row = 0; row < experiment.train.batch_size; ++row) {
    for (int t = 0; t < experiment.train.seq_len; ++t) {
      const auto target = static_cast<int32_t>(random.below(vocabulary));
      const bool scored = row > 1 || (row == 1 && t % 5 == 0);
      rows.inputs.push_back(static_cast<int32_t>(random.below(vocabulary)));
      rows.targets.push_back(scored ? target : data::unscored_target);
      rows.documents.push_back(row < 3 ? t / 7 : 0);
    }
  }
  return rows;
}

config::Experiment uneven_experiment() {
  config::Experiment experiment;
  experiment.model = small_model("ABCD", model::PositionKind::rope);
  experiment.train.batch_size = 5;
  experiment.train.seq_len = 32;
  experiment.train.document_mask = true;
  experiment.train.grad_clip = 0.5;
  experiment.optimizer.lr = 1e-2;
  experiment.schedule.type = "constant";
  return experiment;
}

struct StepResult {
  libtorch::StepTotals totals;
  std::vector<at::Tensor> weights;
};

StepResult steps_of(const config::Experiment& experiment, int count) {
  const at::Device device = test_device();
  libtorch::Trainer trainer(experiment, device);
  libtorch::BatchUploader uploader(device, experiment.train.seq_len);
  libtorch::load_initial(trainer.model(), 5);
  const data::RowBatch rows = uneven_rows(experiment);
  StepResult result;
  for (int64_t step = 0; step < count; ++step) {
    libtorch::step_with_oom_retry(trainer, uploader, rows, step, device, {});
    if (step == 0) result.totals = trainer.optimizer().totals();
  }
  for (const at::Tensor& weight : trainer.model().trainable())
    result.weights.push_back(weight.detach().cpu());
  return result;
}

TEST_CASE("a step in micro-batches is the step on the whole batch", "[worker][micro_batch]") {
  using config::ZLossKind;
  config::Experiment experiment = uneven_experiment();
  for (const ZLossKind z_loss : {ZLossKind::none, ZLossKind::palm, ZLossKind::lingua_code}) {
    for (const model::Precision precision :
         {model::Precision::float32, model::Precision::float64}) {
      experiment.train.z_loss = {z_loss, 1e-2};
      experiment.train.precision = precision;
      experiment.train.micro_batch_size = 0;
      const StepResult whole = steps_of(experiment, 1);
      const bool wide = precision == model::Precision::float64;
      for (const int rows : {1, 2, 3, 4}) {
        INFO("z-loss " << int(z_loss) << ", " << rows << " rows at once");
        experiment.train.micro_batch_size = rows;
        const StepResult parts = steps_of(experiment, 1);
        REQUIRE(std::fabs(parts.totals.loss - whole.totals.loss) <= (wide ? 1e-13 : 1e-6));
        REQUIRE(parts.totals.gradient_norm ==
                Approx(whole.totals.gradient_norm).margin(0).epsilon(wide ? 1e-12 : 1e-5));
      }
      experiment.train.micro_batch_size = 9;  // more than there are
      REQUIRE(steps_of(experiment, 1).totals.loss == whole.totals.loss);
    }
  }
}

// On a GPU the later ones are replayed from a recording of all parts.
TEST_CASE("steps in micro-batches lead to the weights that whole ones lead to",
          "[worker][micro_batch]") {
  config::Experiment experiment = uneven_experiment();
  experiment.train.precision = model::Precision::float64;
  const StepResult whole = steps_of(experiment, 12);
  experiment.train.micro_batch_size = 2;
  const StepResult parts = steps_of(experiment, 12);
  for (size_t i = 0; i < whole.weights.size(); ++i)
    REQUIRE(largest_difference(parts.weights[i], whole.weights[i]) < 1e-9);
}

/// A job whose memory is mostly that of a step.
struct LargeJob : Job {
  LargeJob() {
    experiment.train.batch_size = 8;
    experiment.train.seq_len = 32;
    experiment.train.eval_batch_size = 1;
  }
};

TEST_CASE("a job that memory does not suffice for goes on in micro-batches and says so",
          "[worker][micro_batch]") {
  count_tensors();
  LargeJob job;
  job.run("first");  // what the library takes once
  const int64_t whole = peak_of([&] { job.run("whole"); });
  job.experiment.train.micro_batch_size = 2;
  std::vector<json> wanted;
  const int64_t parts = peak_of([&] { wanted = job.run("parts"); });
  REQUIRE(parts < whole);
  REQUIRE(of_kind(wanted, "micro_batch").empty());
  REQUIRE(of_kind(wanted, "started").at(0).at("micro_batch_size") == 2);
  job.experiment.train.micro_batch_size = 0;
  job.experiment.train.checkpoint_every = 1;
  job.experiment.train.keep_checkpoints = 10;
  const MemoryLimit limit(parts);
  const std::vector<json> events = job.run("limited");
  REQUIRE(job.completed);
  // 4 rows did not fit either.
  const std::vector<json> halved = of_kind(events, "micro_batch");
  REQUIRE(halved.size() == 2);
  REQUIRE(halved.at(0).at("rows") == 4);
  REQUIRE(halved.at(1).at("rows") == 2);
  REQUIRE(halved.at(1).at("of") == 8);
  REQUIRE(halved.at(1).at("step") == 0);
  REQUIRE(halved.at(1).at("phase") == "train");
  REQUIRE(halved.at(1).at("reason").get<std::string>().find("out of memory") == 0);
  REQUIRE(of_kind(events, "started").at(0).at("micro_batch_size").is_null());
  REQUIRE(of_kind(events, "started").at(0).at("tokens_per_step") == 8 * 32);
  REQUIRE(numbers(events) == numbers(wanted));

  SECTION("and keeps them over a resume, whatever memory there is then") {
    libtorch::limit_memory(at::kCPU, 0);
    for (const int64_t step : {1, 6}) {
      const std::vector<json> resumed =
          job.run("resumed", (job.run_dir("limited") / "checkpoints" / named(step)).string());
      REQUIRE(of_kind(resumed, "started").at(0).at("micro_batch_size") == 2);
      REQUIRE(of_kind(resumed, "micro_batch").empty());
      REQUIRE(numbers(resumed) == numbers_after(events, step));
    }
  }
}

TEST_CASE("an evaluation that memory does not suffice for is done in smaller batches",
          "[worker][micro_batch]") {
  count_tensors();
  LargeJob job;
  job.experiment.train.batch_size = 1;
  job.experiment.train.eval_batch_size = 2;
  job.experiment.train.checkpoint_every = 5;
  job.run("first");
  std::vector<json> wanted;
  const int64_t small = peak_of([&] { wanted = job.run("small"); });
  job.experiment.train.eval_batch_size = 64;
  job.more_evaluation_rows();
  const int64_t large = peak_of([&] { job.run("large"); });
  constexpr int64_t room = 16384;  // also for the losses of more rows
  REQUIRE(large > small + room);
  const MemoryLimit limit(small + room);
  const std::vector<json> events = job.run("limited");
  const std::vector<json> halved = of_kind(events, "micro_batch");
  REQUIRE_FALSE(halved.empty());
  for (const json& event : halved) {
    REQUIRE(event.at("phase") == "evaluate");
    REQUIRE(event.at("of") == 64);
    REQUIRE(event.at("step") == 5);
  }
  REQUIRE(of_kind(events, "started").at(0).at("micro_batch_size").is_null());
  job.experiment.train.eval_batch_size = halved.back().at("rows");
  REQUIRE(numbers(events) == numbers(job.run("as many")));
  job.experiment.train.eval_batch_size = 64;
  libtorch::limit_memory(at::kCPU, 0);
  const std::vector<json> resumed =
      job.run("resumed", (job.run_dir("limited") / "checkpoints" / named(5)).string());
  REQUIRE(numbers(resumed) == numbers_after(events, 5));
}

TEST_CASE("where not even one row fits the job ends", "[worker][micro_batch]") {
  count_tensors();
  LargeJob job;
  job.experiment.train.micro_batch_size = 1;
  job.run("first");
  const int64_t before = peak_of([] {});
  const int64_t needed = peak_of([&] { job.run("one row"); });
  const MemoryLimit limit(before + (needed - before) / 2);
  job.experiment.train.micro_batch_size = 0;
  try {
    job.run("run");
    FAIL("nothing was said");
  } catch (const c10::OutOfMemoryError& error) {
    REQUIRE(std::string(error.what_without_backtrace())
                .find("memory ran out though only one row is computed at once: out of memory") ==
            0);
  }
}

TEST_CASE("trouble with a device is told from other errors", "[worker]") {
  const auto judged = [](const std::string& words) {
    try {
      TORCH_CHECK(false, words);
    } catch (const c10::Error& problem) {
      return libtorch::is_retryable(problem, at::Device("cpu"));
    }
    return false;
  };
  REQUIRE(judged("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  REQUIRE(judged("CUDA error: uncorrectable ECC error encountered"));
  REQUIRE_FALSE(judged("CUDA error: an illegal memory access was encountered"));
  REQUIRE_FALSE(judged("out of memory: there are no 512 bytes left"));  // nobody else is asked
  REQUIRE_FALSE(libtorch::is_retryable(Error("wrong config"), at::Device("cpu")));
}

TEST_CASE("lack of memory is told from other errors", "[worker][micro_batch]") {
  const auto judged = [](const auto& work) {
    try {
      work();
    } catch (const std::exception& problem) {
      return torch_compat::is_out_of_memory(problem);
    }
    throw Error("nothing was thrown");
  };
  REQUIRE(judged([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA: no more"); }));
  REQUIRE(judged([] { TORCH_CHECK(false, "CUDA error: out of memory"); }));
  REQUIRE(
      judged([] { TORCH_CHECK(false, "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"); }));
  REQUIRE(judged([] { throw std::bad_alloc(); }));
  REQUIRE_FALSE(judged([] { TORCH_CHECK(false, "shapes differ"); }));
  REQUIRE_FALSE(judged([] { throw Error("out of memory, in words of forge's own"); }));
}

}  // namespace
}  // namespace forge::tests
