#include "core/store/forecast.h"

#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::store {
namespace {

run::RunInputs small_inputs() {
  run::RunInputs inputs = tests::small_inputs();
  inputs.experiment["train"]["max_steps"] = 40;
  inputs.experiment["train"]["batch_size"] = 2;
  inputs.experiment["train"]["seq_len"] = 8;
  return inputs;
}

/// A run that is like small_inputs() and took 100 s for its steps.
RunSummary past_run(const run::RunInputs& inputs) {
  const nlohmann::json& train = inputs.experiment.at("train");
  RunSummary run;
  run.id = "past";
  run.config = inputs.config;
  run.project = inputs.project;
  run.device_name = inputs.backend.environment.device_name;
  run.status = run::RunState::completed;
  run.max_steps = run.step = train.at("max_steps").get<int64_t>();
  run.tokens_per_step = train.at("batch_size").get<int64_t>() * train.at("seq_len").get<int64_t>();
  run.wall_seconds = 100;
  run.peak_memory_bytes = 1 << 20;
  return run;
}

run::PlannedRun planned(run::Action action) {
  run::RunRecord record;
  record.id = "mine";
  return {record, run::RunFolder("mine"), action};
}

TEST_CASE("a run takes as long as the newest one like it", "[store][forecast]") {
  run::RunInputs inputs = small_inputs();
  const RunSummary newest = past_run(inputs);
  RunSummary older = newest;
  older.wall_seconds = 7;
  inputs.experiment["train"]["max_steps"] = 2 * newest.max_steps;
  const Forecast found = forecast({newest, older}, planned(run::Action::start), inputs);
  REQUIRE(found.steps == 2 * newest.max_steps);
  REQUIRE(found.seconds == 200.0);
  REQUIRE(found.memory_bytes == 1 << 20);
}

TEST_CASE("of a run that began only the rest counts, of a cached one nothing",
          "[store][forecast]") {
  const run::RunInputs inputs = small_inputs();
  const RunSummary like = past_run(inputs);
  RunSummary mine = like;
  mine.id = "mine";
  mine.status = run::RunState::stopped;
  mine.step = like.max_steps / 2;
  const Forecast rest = forecast({mine, like}, planned(run::Action::resume), inputs);
  REQUIRE(rest.steps == like.max_steps - mine.step);
  REQUIRE(rest.seconds == 100.0 * double(rest.steps) / double(like.max_steps));
  const Forecast cached = forecast({like}, planned(run::Action::cached), inputs);
  REQUIRE(cached.steps == 0);
  REQUIRE(cached.seconds == 0.0);
}

TEST_CASE("runs of other configs, devices, batches or without an end tell nothing",
          "[store][forecast]") {
  const run::RunInputs inputs = small_inputs();
  const RunSummary like = past_run(inputs);
  std::vector<RunSummary> others(5, like);
  others[0].config = "another";
  others[1].device_name = "another";
  others[2].tokens_per_step *= 2;
  others[3].status = run::RunState::failed;
  others[4].wall_seconds.reset();
  for (const RunSummary& other : others) {
    const Forecast found = forecast({other}, planned(run::Action::start), inputs);
    REQUIRE(found.steps == like.max_steps);
    REQUIRE_FALSE(found.seconds);
    REQUIRE_FALSE(found.memory_bytes);
  }
}

}  // namespace
}  // namespace forge::store
