#include <limits>

#include "backends/libtorch/worker/divergence.h"
#include "core/base/error.h"
#include "core/model/weights/checkpoint.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/catch.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

TEST_CASE("a training job reports its windows and evaluations and its end", "[worker]") {
  Job job;
  const std::vector<json> events = job.run("run");
  REQUIRE(job.completed);
  REQUIRE(of_kind(events, "started").at(0).at("max_steps") == 10);
  REQUIRE(of_kind(events, "started").at(0).at("tokens_per_step") == 16);
  const std::vector<json> train = of_kind(events, "train");
  REQUIRE(train.size() == 3);  // steps 4 and 8 and the last two
  REQUIRE(train.back().at("step") == 10);
  REQUIRE(train.back().at("tokens") == 160);
  const std::vector<json> evaluations = of_kind(events, "evaluation");
  REQUIRE(evaluations.size() == 2);                // steps 5 and 10
  REQUIRE(evaluations.back().at("tokens") == 72);  // (80 - 1) / 8 rows of 8
  const json finished = events.back();
  REQUIRE(finished.at("event") == "finished");
  REQUIRE(finished.at("completed") == true);
  REQUIRE(finished.at("eval_loss") == evaluations.back().at("loss"));
  REQUIRE(finished.at("tokens_per_second").get<double>() > 0);
}

TEST_CASE("the same job twice gives the same losses bit for bit", "[worker]") {
  Job job;
  const std::vector<json> first = job.run("first");
  REQUIRE(numbers(first) == numbers(job.run("second")));
  job.experiment.seed = 43;
  REQUIRE(numbers(first) != numbers(job.run("other")));
}

TEST_CASE("rows to choose by give a loss of their own and change no other", "[worker]") {
  Job job;
  job.evaluation_rows = 4;
  const std::vector<json> without = job.run("without");
  REQUIRE(of_kind(without, "evaluation").back().at("validation_loss").is_null());
  worker::TokenSource behind = job.tokens("evaluation.tokens");
  behind.first_row = 4;
  behind.rows = 5;
  job.validation_tokens = {behind};
  const std::vector<json> with = job.run("with");
  REQUIRE(numbers(with) == numbers(without));
  const std::vector<json> evaluations = of_kind(with, "evaluation");
  REQUIRE(evaluations.size() > 1);
  REQUIRE(evaluations.front().at("validation_loss") != evaluations.back().at("validation_loss"));
  const double chosen_by = evaluations.back().at("validation_loss");
  // All nine rows are the four and the five.
  job.validation_tokens.clear();
  job.evaluation_rows = 0;
  const double all = of_kind(job.run("all"), "evaluation").back().at("loss");
  const double reported = evaluations.back().at("loss");
  REQUIRE(all == Approx((4 * reported + 5 * chosen_by) / 9).epsilon(1e-6));
}

TEST_CASE("the last evaluation reports the loss of every row", "[worker]") {
  Job job;
  job.evaluation_rows = 5;
  job.experiment.train.eval_batch_size = 2;
  const std::vector<json> evaluations = of_kind(job.run("rows"), "evaluation");
  REQUIRE(evaluations.size() > 1);
  CHECK(evaluations.front().at("row_losses").empty());
  const json& last = evaluations.back();
  const auto losses = last.at("row_losses").get<std::vector<double>>();
  const auto tokens = last.at("row_tokens").get<std::vector<int64_t>>();
  REQUIRE(losses.size() == 5);
  REQUIRE(tokens.size() == 5);
  double sum = 0;
  int64_t scored = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    sum += losses[i] * double(tokens[i]);
    scored += tokens[i];
  }
  CHECK(scored == last.at("tokens").get<int64_t>());
  CHECK(sum / double(scored) == Approx(last.at("loss").get<double>()).margin(1e-6));
  // Each row is what it is alone.
  job.experiment.train.eval_batch_size = 1;
  const json alone = of_kind(job.run("alone"), "evaluation").back();
  for (size_t i = 0; i < losses.size(); ++i)
    CHECK(alone.at("row_losses")[i].get<double>() == Approx(losses[i]).margin(1e-5));
  CHECK(losses[0] != losses[1]);
}

TEST_CASE("a document mask changes the losses and needs to know what begins a document",
          "[worker]") {
  Job job;
  const std::vector<json> whole = job.run("whole");
  job.document_start = 7;
  REQUIRE(numbers(job.run("not asked for")) == numbers(whole));
  job.experiment.train.document_mask = true;
  const std::vector<json> divided = job.run("divided");
  REQUIRE(numbers(divided) != numbers(whole));
  REQUIRE(numbers(divided) == numbers(job.run("divided again")));
  job.document_start.reset();
  REQUIRE(error_of([&] { job.run("unknown"); }).find("what begins a document") !=
          std::string::npos);
}

std::vector<std::string> checkpoints_in(const std::filesystem::path& run_dir) {
  std::vector<std::string> names;
  for (const auto& folder : weights::list_checkpoints(run_dir / "checkpoints"))
    names.push_back(folder.filename().string());
  return names;
}

TEST_CASE("a job that resumes after any step goes on like one that never stopped or saved",
          "[worker]") {
  for (const bool documents : {false, true}) {
    Job job;
    job.experiment.train.document_mask = documents;
    if (documents) job.document_start = 7;
    const std::vector<json> straight = job.run("straight");
    job.experiment.train.checkpoint_every = 1;
    job.experiment.train.keep_checkpoints = 10;
    REQUIRE(numbers(job.run("saving")) == numbers(straight));
    for (int64_t step = 1; step < 10; ++step) {
      INFO("resumed after step " << step);
      const std::vector<json> resumed =
          job.run("resumed", (job.run_dir("saving") / "checkpoints" / named(step)).string());
      REQUIRE(of_kind(resumed, "started").at(0).at("first_step") == step);
      REQUIRE(numbers(resumed) == numbers_after(straight, step));
      REQUIRE(resumed.back().at("train_loss") == straight.back().at("train_loss"));
      for (const char* file : {weights::weights_file, weights::optimizer_file}) {
        REQUIRE(hash_file(job.run_dir("resumed") / "checkpoints" / named(10) / file) ==
                hash_file(job.run_dir("straight") / "checkpoints" / named(10) / file));
      }
    }
  }
}

TEST_CASE("a job stops after the step that its request names and goes on from there", "[worker]") {
  Job job;
  const std::vector<json> straight = job.run("straight");
  job.stop_after = 5;
  const std::vector<json> stopped = job.run("stopped");
  REQUIRE_FALSE(job.completed);
  REQUIRE(stopped.back().at("event") == "finished");
  REQUIRE(stopped.back().at("step") == 5);
  REQUIRE(of_kind(stopped, "evaluation").size() == 1);
  REQUIRE(checkpoints_in(job.run_dir("stopped")) == std::vector<std::string>{named(5)});
  job.stop_after = 10;
  const std::vector<json> resumed =
      job.run("resumed", (job.run_dir("stopped") / "checkpoints" / named(5)).string());
  REQUIRE(job.completed);
  REQUIRE(numbers(resumed) == numbers_after(straight, 5));
}

TEST_CASE("a checkpoint says where the run stands and what it is", "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 5;
  const std::vector<json> events = job.run("run");
  const auto checkpoint = job.run_dir("run") / "checkpoints" / named(5);
  const weights::CheckpointState state = weights::read_checkpoint_state(checkpoint);
  REQUIRE(state.rows_served == 10);
  REQUIRE(state.identity == "0123456789ab");
  REQUIRE(state.eval_loss == of_kind(events, "evaluation").at(0).at("loss").get<double>());
  REQUIRE(state.extra.at("optimizer_step") == 5);
  REQUIRE(state.extra.at("random").at("seed") == 42);
  REQUIRE(state.extra.at("experiment") == config::to_json(job.experiment));
  const std::vector<json> saved = of_kind(events, "checkpoint");
  REQUIRE(saved.size() == 2);
  REQUIRE(saved[0].at("path") == "checkpoints/" + named(5));
  REQUIRE(saved[1].at("path") == "checkpoints/" + named(10));
}

TEST_CASE("a run that is stopped where it was resumed keeps what was evaluated there", "[worker]") {
  Job job;
  job.stop_after = 5;
  job.run("run");
  const auto checkpoint = job.run_dir("run") / "checkpoints" / named(5);
  const std::optional<double> loss = weights::read_checkpoint_state(checkpoint).eval_loss;
  REQUIRE(loss);
  job.run("run", checkpoint.string());
  CHECK(weights::read_checkpoint_state(checkpoint).eval_loss == loss);
}

TEST_CASE("the worker leaves it to forge which checkpoints are kept", "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 3;
  job.experiment.train.keep_checkpoints = 1;
  job.run("all");
  REQUIRE(checkpoints_in(job.run_dir("all")) ==
          std::vector<std::string>{named(3), named(6), named(9), named(10)});
}

/// The checkpoint with another set of optimizer tensors, made by `change`.
template <class Change>
std::filesystem::path altered(const std::filesystem::path& checkpoint,
                              const std::filesystem::path& folder,
                              const Change& change) {
  const weights::SafetensorsFile kept(checkpoint / weights::weights_file);
  const weights::SafetensorsFile moments(checkpoint / weights::optimizer_file);
  auto tensors = moments.tensors();
  change(tensors);
  return weights::write_checkpoint(
      folder, weights::read_checkpoint_state(checkpoint), kept.tensors(), tensors);
}

TEST_CASE("optimizer state that does not fit is refused by name", "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 5;
  job.run("run");
  const auto checkpoint = job.run_dir("run") / "checkpoints" / named(5);
  const std::string name = "model.norm.weight.first_moment";
  const std::vector<std::byte> zeros(1024);
  using Tensors = std::map<std::string, weights::TensorView>;
  const auto refusal = [&](const auto& change) {
    const auto folder = altered(checkpoint, job.run_dir("altered"), change);
    return error_of([&] { job.run("resumed", folder.string()); });
  };
  const std::string missing = refusal([&](Tensors& t) { t.erase(name); });
  REQUIRE(missing.find("altered") != std::string::npos);
  REQUIRE(missing.find("cannot be resumed: ") != std::string::npos);
  REQUIRE(missing.find(name) != std::string::npos);
  const std::string extra = refusal([&](Tensors& t) {
    t["x.master_weight"] = {weights::Dtype::f32, {2}, zeros.data(), 8};
  });
  REQUIRE(extra.find("holds 'x.master_weight', which is not used") != std::string::npos);
  const std::string wide = refusal([&](Tensors& t) {
    t[name] = {weights::Dtype::f64, t[name].shape, zeros.data(), 2 * t[name].bytes};
  });
  REQUIRE(wide.find("'" + name + "' is F64") != std::string::npos);
  const std::string longer = refusal([&](Tensors& t) {
    t[name] = {weights::Dtype::f32, {t[name].shape[0] + 1}, zeros.data(), t[name].bytes + 4};
  });
  REQUIRE(longer.find("'" + name + "' has another shape") != std::string::npos);
}

TEST_CASE("a checkpoint of another config or of an imported model is refused", "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 5;
  job.run("run");
  const auto checkpoint = job.run_dir("run") / "checkpoints" / named(5);
  job.experiment.train.grad_clip = 0.5;
  const std::string message = error_of([&] { job.run("resumed", checkpoint.string()); });
  REQUIRE(message.find("train.grad_clip is 0.5 and was 0.0") != std::string::npos);
  const auto imported = weights::write_checkpoint(job.run_dir("imported"), {}, {}, {});
  const std::string other = error_of([&] { job.run("resumed", imported.string()); });
  REQUIRE(other.find("initial_weights") != std::string::npos);
  REQUIRE(other.find("json.exception") == std::string::npos);
}

TEST_CASE("a checkpoint that cannot be written ends the job with an error of storage", "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 2;
  std::filesystem::create_directories(job.run_dir("run"));
  std::ofstream(job.run_dir("run") / "checkpoints") << "a file where the folder should be";
  try {
    job.run("run");
    FAIL("nothing was said");
  } catch (const Error& error) {
    REQUIRE(error.exit_code() == ExitCode::storage);
    REQUIRE(error.message().find("the checkpoint of step 2 could not be written") == 0);
  }
}

TEST_CASE("a loss that is no number ends the job with a hint", "[worker]") {
  Job job;
  job.experiment.optimizer.lr = 1e30;
  job.experiment.schedule.type = "constant";
  job.experiment.train.checkpoint_every = 1;
  job.experiment.train.keep_checkpoints = 9;
  std::string message;
  try {
    job.run("run");
  } catch (const libtorch::Diverged& error) {
    message = describe(error);
  }
  REQUIRE(message.find("not a finite number") != std::string::npos);
  REQUIRE(message.find("optimizer.lr") != std::string::npos);
  // The rate is 0 in the first step, so the second one's loss is the last that makes sense, and its
  // update is what spoils the weights.
  REQUIRE(checkpoints_in(job.run_dir("run")) == std::vector<std::string>{named(1)});
  REQUIRE(message.find("it was good up to step 2") != std::string::npos);
  REQUIRE(message.find("the checkpoint of step 1 is the last one before that") !=
          std::string::npos);
}

using libtorch::DivergenceDetector;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

config::Experiment sample() {
  config::Experiment experiment;
  experiment.model.vocab_size = 1000;  // guessing costs 6.9 nats
  experiment.train.max_steps = 100;
  experiment.train.max_bad_steps = 10;
  experiment.schedule.type = "constant";
  return experiment;
}

/// Ten steps up to `step` with a mean loss.
libtorch::StepWindow ten_steps(int64_t step, double loss, double norm = 1) {
  return {step, 10, 10 * loss, 10 * norm};
}

TEST_CASE("a loss is bad that is not finite or far above guessing and above the first one",
          "[worker]") {
  const config::Experiment experiment = sample();
  double first = 0;
  DivergenceDetector watch(experiment);
  watch.add(ten_steps(10, 7.5), first);
  REQUIRE(first == 7.5);
  for (const double good : {7.5, 22.0, 0.01}) {
    watch.add(ten_steps(20, good), first);
    REQUIRE(watch.is_good());
    REQUIRE_FALSE(watch.is_diverged());
  }
  REQUIRE(first == 7.5);
  for (const double bad : {22.6, nan, std::numeric_limits<double>::infinity()}) {
    DivergenceDetector other(experiment);
    other.add(ten_steps(10, bad), first);
    REQUIRE_FALSE(other.is_good());
  }
  DivergenceDetector other(experiment);
  other.add(ten_steps(10, 5, nan), first);  // the next loss would be nan
  REQUIRE_FALSE(other.is_good());
  // A model that begins far worse than guessing is given its own measure.
  double high = 0;
  DivergenceDetector strange(experiment);
  strange.add(ten_steps(10, 40), high);
  strange.add(ten_steps(20, 100), high);
  REQUIRE(strange.is_good() == true);
}

TEST_CASE("so many bad steps in a row are the end and a good one begins the count anew",
          "[worker]") {
  config::Experiment experiment = sample();
  experiment.train.max_bad_steps = 20;
  double first = 0;
  DivergenceDetector watch(experiment);
  watch.add(ten_steps(10, 99), first);
  REQUIRE(first == 99);
  first = 7;
  watch.add(ten_steps(20, 99), first);
  REQUIRE_FALSE(watch.is_diverged());
  watch.add(ten_steps(30, 7), first);
  watch.add(ten_steps(40, 99), first);
  REQUIRE_FALSE(watch.is_diverged());
  watch.add({50, 0, 0, 0}, first);  // nothing new
  REQUIRE_FALSE(watch.is_diverged());
  watch.add(ten_steps(50, 99), first);
  REQUIRE(watch.is_diverged());
}

TEST_CASE("the diagnosis says what was good last and which weight is broken", "[worker]") {
  const config::Experiment experiment = sample();
  double first = 0;
  DivergenceDetector watch(experiment);
  watch.add(ten_steps(10, 7, 2), first);
  watch.add(ten_steps(20, nan, nan), first);
  libtorch::NamedTensors weights = {{"whole", at::ones({3})}, {"broken", at::ones({3})}};
  weights[1].second[1] = nan;
  const std::string text = watch.diagnosis(weights);
  INFO(text);
  REQUIRE(contains(text, "not a finite number: step 20 has loss nan"));
  REQUIRE(
      contains(text, "good up to step 10, with loss 7.0, gradient norm 2.0, learning rate 0.001"));
  REQUIRE(contains(text, "'broken' holds"));
  DivergenceDetector other(experiment);
  other.add(ten_steps(10, 7), first);
  other.add(ten_steps(20, 70), first);
  REQUIRE(contains(other.diagnosis({}), "exploded: step 20 has loss 70"));
}

}  // namespace
}  // namespace forge::tests
