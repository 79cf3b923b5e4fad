#include "tests/support/torch_catch.h"

#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/step_in_memory.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/weights/checkpoint.h"
#include "tests/backends/libtorch/worker/training_job.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

/// For as long as it lives, tensors on the CPU may hold no more bytes.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes) { worker::limit_cpu_tensor_bytes(bytes); }
  ~MemoryLimit() { worker::limit_cpu_tensor_bytes(0); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

/// Most bytes that tensors held during the work, together with what they held before.
template <class Work>
int64_t peak_of(const Work& work) {
  worker::reset_peak_cpu_tensor_bytes();
  work();
  return worker::peak_cpu_tensor_bytes();
}

void count_tensors() {
  static const bool installed = [] {
    worker::install_counting_allocator();
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
  experiment.model = small_model("ABCD", config::PositionKind::rope);
  experiment.train.batch_size = 5;
  experiment.train.seq_len = 32;
  experiment.train.document_mask = true;
  experiment.train.grad_clip = 0.5;
  experiment.optimizer.lr = 1e-2;
  experiment.schedule.type = "constant";
  return experiment;
}

struct StepResult {
  worker::StepTotals totals;
  std::vector<at::Tensor> weights;
};

StepResult steps_of(const config::Experiment& experiment, int count) {
  const at::Device device = test_device();
  worker::Trainer trainer(experiment, device);
  worker::Uploader uploader(device, experiment.train.seq_len);
  worker::load_initial(trainer.model(), 5);
  const data::RowBatch rows = uneven_rows(experiment);
  StepResult result;
  for (int64_t step = 0; step < count; ++step) {
    worker::step_in_memory(trainer, uploader, rows, step, device, {});
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
    for (const config::Precision precision :
         {config::Precision::float32, config::Precision::float64}) {
      experiment.train.z_loss = {z_loss, 1e-2};
      experiment.train.precision = precision;
      experiment.train.micro_batch_size = 0;
      const StepResult whole = steps_of(experiment, 1);
      const bool wide = precision == config::Precision::float64;
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
  experiment.train.precision = config::Precision::float64;
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
    worker::limit_cpu_tensor_bytes(0);
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
  REQUIRE(large > small + 1024);
  const MemoryLimit limit(small + 1024);
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
  worker::limit_cpu_tensor_bytes(0);
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
      return worker::may_be_mended(problem, at::Device("cpu"));
    }
    return false;
  };
  REQUIRE(judged("CUDA error: CUDA-capable device(s) is/are busy or unavailable"));
  REQUIRE(judged("CUDA error: uncorrectable ECC error encountered"));
  REQUIRE_FALSE(judged("CUDA error: an illegal memory access was encountered"));
  REQUIRE_FALSE(judged("out of memory: there are no 512 bytes left"));  // nobody else is asked
  REQUIRE_FALSE(worker::may_be_mended(Error("wrong config"), at::Device("cpu")));
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
