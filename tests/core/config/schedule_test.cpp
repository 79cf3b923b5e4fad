#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/config/schedule.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/vector_case.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json json = Json::parse(read_file(tests::shared_vector_file("schedules.json")));
  return json;
}

ScheduleConfig infinite_schedule(const Json& args) {
  ScheduleConfig schedule;
  schedule.type = "infinite_lr";
  schedule.warmup_steps = args.at("warmup_steps");
  schedule.cooldown_steps = args.at("cooldown_steps");
  schedule.constant_lr = args.at("constant_lr");
  schedule.min_lr = args.value("min_lr", schedule.min_lr);
  schedule.tau = args.value("tau", schedule.tau);
  schedule.checkpoint_step = args.value("checkpoint_step", schedule.checkpoint_step);
  return schedule;
}

ScheduleConfig typed(const std::string& type, int64_t warmup_steps) {
  ScheduleConfig schedule;
  schedule.type = type;
  schedule.warmup_steps = warmup_steps;
  return schedule;
}

TEST_CASE("infinite_lr gives the reference rates with and without annealing") {
  for (const char* name : {"infinite_forgather_tiny", "infinite_with_checkpoint"}) {
    const Json& vector = vectors().at(name);
    const ScheduleConfig schedule = infinite_schedule(vector.at("args"));
    const double lr = vector.at("args").at("base_lr");
    for (const Json& point : vector.at("lr")) {
      INFO(name << " at step " << point.at(0));
      REQUIRE(learning_rate(schedule, lr, point.at(0), 0) ==
              Approx(point.at(1).get<double>()).epsilon(1e-12).margin(1e-18));
    }
  }
}

TEST_CASE("infinite_lr without a cooldown keeps the peak rate until annealing") {
  ScheduleConfig schedule = typed("infinite_lr", 10);
  schedule.constant_lr = 1e-4;
  REQUIRE(learning_rate(schedule, 1e-3, 10, 0) == 1e-3);
  REQUIRE(learning_rate(schedule, 1e-3, 100000, 0) == 1e-3);
  schedule.checkpoint_step = 50;
  REQUIRE(learning_rate(schedule, 1e-3, 49, 0) == 1e-3);
  REQUIRE(learning_rate(schedule, 1e-3, 50, 0) == Approx(1e-4));
}

/// The schedule of a vector of factors. Its kind is the beginning of its name; an argument that is
/// not understood fails the test.
ScheduleConfig lingua_schedule(const std::string& name, const Json& args) {
  ScheduleConfig schedule;
  for (const std::string& type : schedule_types()) {
    if (name.rfind(type, 0) == 0) schedule.type = type;
  }
  REQUIRE(name.rfind(schedule.type, 0) == 0);
  for (const auto& [key, value] : args.items()) {
    INFO(name << ": " << key);
    if (key == "warmup")
      value.get_to(schedule.warmup_steps);
    else if (key == "min_ratio")
      value.get_to(schedule.lr_min_ratio);
    else if (key == "cycle_length")
      value.get_to(schedule.cycle_length);
    else if (key == "theta")
      value.get_to(schedule.cosine_theta);
    else if (key == "decay_fraction")
      value.get_to(schedule.decay_fraction);
    else if (key == "exp_factor")
      value.get_to(schedule.exp_factor);
    else
      REQUIRE(key == "n_steps");
  }
  return schedule;
}

TEST_CASE("every schedule of Meta Lingua gives the reference factors, the last step's included") {
  int checked = 0;
  for (const auto& [name, vector] : vectors().items()) {
    if (!vector.contains("factor")) continue;
    const ScheduleConfig schedule = lingua_schedule(name, vector.at("args"));
    const int64_t max_steps = vector.at("args").value("n_steps", int64_t{1000});
    for (const Json& point : vector.at("factor")) {
      INFO(name << " at step " << point.at(0));
      REQUIRE(learning_rate(schedule, 3e-4, point.at(0), max_steps) ==
              Approx(3e-4 * point.at(1).get<double>()).epsilon(1e-12).margin(1e-18));
      ++checked;
    }
  }
  REQUIRE(checked > 0);
}

TEST_CASE("cosine in two cycles falls, begins again upside down, and bends with theta") {
  ScheduleConfig schedule = typed("cosine", 0);
  schedule.lr_min_ratio = 0;
  schedule.cycle_length = 0.5;
  // 1/2 (1 + cos(2 pi x)), then 1/2 (1 - cos(2 pi x)) in the second half.
  REQUIRE(learning_rate(schedule, 1, 25, 100) == Approx(0.5));
  REQUIRE(learning_rate(schedule, 1, 49, 100) == Approx(0.000986636).epsilon(1e-5));
  REQUIRE(learning_rate(schedule, 1, 50, 100) == Approx(1));
  REQUIRE(learning_rate(schedule, 1, 75, 100) == Approx(0.5));
  REQUIRE(learning_rate(schedule, 1, 99, 100) == Approx(0.000986636).epsilon(1e-5));
  schedule.cycle_length = 1;
  schedule.cosine_theta = 2;
  // x = 1/2: 1/2 (1 + cos(pi / 4))
  REQUIRE(learning_rate(schedule, 1, 50, 100) == Approx(0.853553391));
}

TEST_CASE("wsd decays at the end of every cycle, over the same part of all steps so far") {
  ScheduleConfig schedule = typed("wsd", 0);
  schedule.lr_min_ratio = 0.1;
  schedule.cycle_length = 0.5;
  schedule.decay_fraction = 0.2;
  REQUIRE(learning_rate(schedule, 1, 40, 100) == 1);
  REQUIRE(learning_rate(schedule, 1, 45, 100) == Approx(1 / 5.5));  // half of steps 40 to 50
  REQUIRE(learning_rate(schedule, 1, 50, 100) == 1);                // the second cycle
  REQUIRE(learning_rate(schedule, 1, 80, 100) == 1);
  REQUIRE(learning_rate(schedule, 1, 90, 100) == Approx(1 / 5.5));  // half of steps 80 to 100
}

TEST_CASE("the first update of a warm-up moves nothing, under every schedule") {
  for (const std::string& type : schedule_types()) {
    INFO(type);
    REQUIRE(learning_rate(typed(type, 7), 0.5, 0, 100) == 0);
    REQUIRE(learning_rate(typed(type, 7), 0.5, 1, 100) == Approx(0.5 / 7));
    REQUIRE(learning_rate(typed(type, 7), 0.5, 7, 100) == Approx(0.5));
  }
}

TEST_CASE("constant stays at the peak after its warm-up") {
  const ScheduleConfig schedule = typed("constant", 4);
  REQUIRE(learning_rate(schedule, 0.5, 0, 100) == 0);
  REQUIRE(learning_rate(schedule, 0.5, 1, 100) == 0.125);
  REQUIRE(learning_rate(schedule, 0.5, 4, 100) == 0.5);
  REQUIRE(learning_rate(schedule, 0.5, 99, 100) == 0.5);
}

TEST_CASE("without a warm-up the first step has the peak rate") {
  for (const char* type : {"infinite_lr", "cosine", "linear", "wsd", "constant"}) {
    REQUIRE(learning_rate(typed(type, 0), 0.5, 0, 100) == 0.5);
  }
}

TEST_CASE("a warm-up as long as the run never divides by zero") {
  for (const char* type : {"cosine", "linear"}) {
    const ScheduleConfig schedule = typed(type, 100);
    REQUIRE(learning_rate(schedule, 1, 99, 100) == Approx(0.99));
    REQUIRE(learning_rate(schedule, 1, 100, 100) == Approx(schedule.lr_min_ratio));
  }
}

TEST_CASE("an unknown schedule is named with what was meant") {
  const std::string message = tests::error_of([] { learning_rate(typed("cosin", 0), 1, 0, 100); });
  REQUIRE(message.find("'cosin'") != std::string::npos);
  REQUIRE(message.find("did you mean 'cosine'?") != std::string::npos);
}

using tests::contains;
using tests::error_of;

Experiment sample(const std::string& schedule = "infinite_lr") {
  Experiment experiment;
  experiment.train.max_steps = 300;
  experiment.schedule.type = schedule;
  experiment.schedule.warmup_steps = 10;
  experiment.schedule.cooldown_steps = 50;
  return experiment;
}

TEST_CASE("training goes on under the config that it began with and under one that keeps others") {
  const Experiment before = sample();
  check_resumable(before, before, 300);
  Experiment now = before;
  now.name = "another";
  now.train.log_every = 3;
  now.train.eval_every = 7;
  now.train.eval_rows = 9;
  now.train.checkpoint_every = 11;
  now.train.keep_checkpoints = 5;
  now.train.keep_best = false;
  now.train.max_bad_steps = 2;
  now.train.hung_after_seconds = 9;
  now.data.path = now.data.task.grammar = now.external.working_directory = "/elsewhere";
  check_resumable(before, now, 120);
}

TEST_CASE("what changes a step is named with both values") {
  const Experiment before = sample();
  const auto refusal = [&](const auto& change) {
    Experiment now = before;
    change(now);
    return error_of([&] { check_resumable(before, now, 120); });
  };
  const std::string batch = refusal([](Experiment& e) { e.train.batch_size = 16; });
  REQUIRE(contains(batch, "train.batch_size is 16 and was 32"));
  REQUIRE(contains(batch, "from step 120"));
  REQUIRE(contains(refusal([](Experiment& e) { e.seed = 7; }), "seed is 7 and was 42"));
  REQUIRE(contains(refusal([](Experiment& e) { e.model.canon.set = "AC"; }), "model.canon.set"));
  REQUIRE(contains(refusal([](Experiment& e) { e.optimizer.eps = 1; }), "optimizer.eps"));
  REQUIRE(contains(refusal([](Experiment& e) { e.data.seed = 2; }), "data.seed"));
  REQUIRE(contains(refusal([](Experiment& e) { e.data.sources["a"].weight = 2; }), "data.sources"));
  REQUIRE(contains(refusal([](Experiment& e) { e.train.precision = Precision::bfloat16; }),
                   "train.precision"));
}

TEST_CASE("a longer budget is allowed where every step done had the rate that it would have") {
  for (const char* type : {"infinite_lr", "constant", "inv_sqrt"}) {
    const Experiment before = sample(type);
    Experiment now = before;
    now.train.max_steps = 900;
    check_resumable(before, now, 300);
    now.train.max_steps = 100;
    const std::string message = error_of([&] { check_resumable(before, now, 120); });
    REQUIRE(contains(message, "the checkpoint is of step 120"));
    REQUIRE(contains(message, "ends after step 100"));
  }
  for (const char* type : {"cosine", "linear"}) {
    const Experiment before = sample(type);
    Experiment now = before;
    now.train.max_steps = 900;
    const std::string message = error_of([&] { check_resumable(before, now, 120); });
    REQUIRE(contains(message, "step 12 was done with learning rate"));  // after the warm-up
    REQUIRE(contains(message, "schedule.type " + std::string(type) + " of 900 steps"));
    REQUIRE(contains(message, "of 300"));
    check_resumable(before, now, 11);
  }
}

TEST_CASE("under wsd a longer budget is allowed up to where the rate began to fall") {
  const Experiment before = sample("wsd");
  Experiment now = before;
  now.train.max_steps = 600;
  check_resumable(before, now, 271);  // the last tenth of 300 steps falls
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 300); }), "at most 271 steps"));
}

TEST_CASE("another peak rate is refused and one for later alone is not") {
  const Experiment before = sample();
  Experiment now = before;
  now.optimizer.lr = 2e-3;
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 120); }), "step 2 was done"));
  now = before;
  now.schedule.checkpoint_step = 200;  // annealing begins there
  check_resumable(before, now, 200);
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 250); }), "step 202 was done"));
}

}  // namespace
}  // namespace forge::config
