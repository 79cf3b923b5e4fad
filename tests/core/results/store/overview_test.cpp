#include "core/results/store/overview.h"

#include <chrono>

#include "core/results/store/result_store.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

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
  run.metrics["wall_seconds"] = 100;
  run.metrics["peak_memory_bytes"] = 1 << 20;
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
  older.metrics["wall_seconds"] = 7;
  inputs.experiment["train"]["max_steps"] = 2 * newest.max_steps;
  const std::vector<RunSummary> past = {newest, older};
  const Forecast found = forecast(PastRuns(past), planned(run::Action::start), inputs);
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
  const std::vector<RunSummary> past = {mine, like};
  const Forecast rest = forecast(PastRuns(past), planned(run::Action::resume), inputs);
  REQUIRE(rest.steps == like.max_steps - mine.step);
  REQUIRE(rest.seconds == 100.0 * double(rest.steps) / double(like.max_steps));
  const Forecast cached = forecast(PastRuns(past), planned(run::Action::cached), inputs);
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
  others[4].metrics.erase("wall_seconds");
  for (const RunSummary& other : others) {
    const std::vector<RunSummary> past = {other};
    const Forecast found = forecast(PastRuns(past), planned(run::Action::start), inputs);
    REQUIRE(found.steps == like.max_steps);
    REQUIRE_FALSE(found.seconds);
    REQUIRE_FALSE(found.memory_bytes);
  }
}

using tests::MadeRun;
using tests::TemporaryFolder;

MadeRun made_with_steps(const std::string& id) {
  MadeRun run;
  run.id = id;
  run.experiment.train.max_steps = 40;
  return run;
}

queue::QueueEntry entry(const std::string& run, int priority = 0) {
  queue::QueueEntry entry;
  entry.run = run;
  entry.group = "group";
  entry.submitted = "2026-11-21T10:00:00.000Z";
  entry.host = run::host_name();
  entry.devices = {{"cpu", 2}};
  entry.priority = priority;
  return entry;
}

TEST_CASE("what runs, waits and has ended is told apart", "[store][overview]") {
  TemporaryFolder runs;
  make_completed_run(runs.path(), made_with_steps("done"));
  make_failed_run(runs.path(), made_with_steps("broken"), 10, "no");
  make_unstarted_run(runs.path(), made_with_steps("waits"));
  make_unstarted_run(runs.path(), made_with_steps("first"));
  make_unstarted_run(runs.path(), made_with_steps("never_asked_for"));
  const FileLock running = make_running_run(runs.path(), made_with_steps("runs"), 20);
  {
    queue::Queue queue(runs.path());
    queue.add(entry("waits"));
    queue.add(entry("first", 1));
    queue::QueueEntry begun = entry("runs");
    begun.device = "cpu";
    queue.add(begun);
  }
  const auto lease =
      queue::Lease::try_acquire(queue::leases_folder(runs.path()), {"cuda:0", 24}, 24);
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 1);

  REQUIRE(now.running.size() == 1);
  REQUIRE(now.running[0].run.id == "runs");
  REQUIRE(now.running[0].device == "cpu");
  REQUIRE(now.running[0].step == 20);
  REQUIRE(now.running[0].seconds_left);
  REQUIRE(now.waiting.size() == 2);
  REQUIRE(now.waiting[0].entry.run == "first");
  REQUIRE(now.waiting[1].entry.run == "waits");
  REQUIRE(now.waiting[1].steps_left == 40);
  REQUIRE(now.waiting[1].seconds == 75.0);  // as long as the completed run took
  REQUIRE(now.ended.size() == 1);
  REQUIRE(now.devices.size() == 1);
  REQUIRE(now.devices[0].device.name == "cuda:0");
  REQUIRE(now.devices[0].used_units == 24);
  REQUIRE(now.warnings.empty());
}

TEST_CASE("a run that waits on another host tells when that gave its last sign of life",
          "[store][overview]") {
  TemporaryFolder runs;
  make_unstarted_run(runs.path(), made_with_steps("here"));
  make_unstarted_run(runs.path(), made_with_steps("there"));
  queue::QueueEntry theirs = entry("there");
  theirs.host = "another";
  queue::Queue(runs.path()).put(entry("here"));
  queue::Queue(runs.path()).put(theirs);
  fs::last_write_time(runs / ".queue" / "entries" / "there",
                      fs::file_time_type::clock::now() - std::chrono::seconds(180));
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 1);
  REQUIRE(now.waiting.size() == 2);
  REQUIRE_FALSE(now.waiting[0].host_silent_seconds);
  REQUIRE(now.waiting[1].host_silent_seconds.value() >= 179);
}

TEST_CASE("an active run is as far as its last progress", "[store][overview]") {
  TemporaryFolder runs;
  const FileLock running = make_running_run(runs.path(), made_with_steps("runs"), 10);
  ResultStore store(runs / "forge.sqlite");
  store.sync(runs.path());
  REQUIRE(current_step(runs.path(), store.run("runs").value()) == 10);
  runs.write("runs/progress.json",
             worker::to_line(worker::to_json(worker::Progress{16, "train", 0})));
  REQUIRE(current_step(runs.path(), store.run("runs").value()) == 16);
  REQUIRE(overview(store, runs.path(), 1).running.at(0).step == 16);
}

TEST_CASE("an empty runs folder has nothing to tell", "[store][overview]") {
  TemporaryFolder runs;
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 5);
  REQUIRE(now.running.empty());
  REQUIRE(now.waiting.empty());
  REQUIRE(now.ended.empty());
  REQUIRE(now.devices.empty());
}

}  // namespace
}  // namespace forge::store
