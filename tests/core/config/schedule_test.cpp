#include "core/config/schedule.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json json = Json::parse(read_file(tests::tests_dir() / "vectors/schedules.json"));
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

TEST_CASE("cosine gives the reference factors") {
  for (const char* name : {"cosine", "cosine_min10"}) {
    const Json& args = vectors().at(name).at("args");
    const int64_t max_steps = args.at("n_steps");
    ScheduleConfig schedule = typed("cosine", args.at("warmup"));
    schedule.lr_min_ratio = args.at("min_ratio");
    for (const Json& point : vectors().at(name).at("factor")) {
      const int64_t step = point.at(0);
      // The reference jumps back to 1 at max_steps itself, a step that no run takes.
      if (step == max_steps) continue;
      INFO(name << " at step " << step);
      REQUIRE(learning_rate(schedule, 3e-4, step, max_steps) ==
              Approx(3e-4 * point.at(1).get<double>()).epsilon(1e-12).margin(1e-18));
    }
    REQUIRE(learning_rate(schedule, 3e-4, max_steps, max_steps) ==
            Approx(3e-4 * schedule.lr_min_ratio));
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
  for (const char* type : {"infinite_lr", "cosine", "constant"}) {
    REQUIRE(learning_rate(typed(type, 0), 0.5, 0, 100) == 0.5);
  }
}

TEST_CASE("a warm-up as long as the run never divides by zero") {
  const ScheduleConfig schedule = typed("cosine", 100);
  REQUIRE(learning_rate(schedule, 1, 99, 100) == Approx(0.99));
  REQUIRE(learning_rate(schedule, 1, 100, 100) == Approx(schedule.lr_min_ratio));
}

TEST_CASE("an unknown schedule is named with what was meant") {
  const std::string message = tests::error_of([] { learning_rate(typed("cosin", 0), 1, 0, 100); });
  REQUIRE(message.find("'cosin'") != std::string::npos);
  REQUIRE(message.find("did you mean 'cosine'?") != std::string::npos);
}

}  // namespace
}  // namespace forge::config
