#include "core/results/store/overview.h"

#include <chrono>
#include <functional>
#include <map>

#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/store/result_store.h"
#include "core/run/host.h"
#include "core/run/queue/queue.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

/// A small experiment on two threads of a CPU.
config::Experiment small_experiment() {
  config::Experiment experiment = tests::MadeRun().experiment;
  experiment.train.max_steps = 40;
  experiment.train.eval_rows = 0;
  return experiment;
}

RemainingWork work_of(const config::Experiment& experiment, int64_t steps = 40) {
  return {config::to_json(experiment), steps, "cpu", "Test CPU", 2};
}

/// Completed runs and their configs.
struct Past {
  std::vector<RunSummary> runs;
  std::map<std::string, nlohmann::json> configs;

  RunSummary& add(const config::Experiment& experiment, double tokens_per_second) {
    RunSummary run;
    run.id = "past" + std::to_string(runs.size());
    run.device_type = "cpu";
    run.device_name = "Test CPU";
    run.threads = 2;
    run.status = run::RunState::completed;
    run.max_steps = run.step = experiment.train.max_steps;
    run.tokens_per_step = int64_t{experiment.train.batch_size} * experiment.train.seq_len;
    run.metrics["tokens_per_second"] = tokens_per_second;
    configs[run.id] = config::to_json(experiment);
    return runs.emplace_back(run);
  }
  Forecast of(const RemainingWork& work) const {
    return forecast(PastRuns(runs, [&](const std::string& id) { return configs.at(id); }), work);
  }
};

TEST_CASE("a run takes as long as the newest one of its size", "[store][forecast]") {
  const config::Experiment experiment = small_experiment();
  Past past;
  past.add(experiment, 1000);
  past.add(experiment, 7);
  const double tokens = 40.0 * experiment.train.batch_size * experiment.train.seq_len;
  const Forecast found = past.of(work_of(experiment));
  REQUIRE(found.steps == 40);
  REQUIRE(found.seconds.value() == Approx(tokens / 1000));
  REQUIRE(found.memory_bytes ==
          model::training_bytes(experiment.model, experiment.train.shape()).total());
  REQUIRE(past.of(work_of(experiment, 10)).seconds.value() == Approx(tokens / 4000));
  REQUIRE(past.of(work_of(experiment, 0)).seconds == 0.0);
}

TEST_CASE("a larger model takes more time and memory, and evaluations count", "[store][forecast]") {
  config::Experiment experiment = small_experiment();
  Past past;
  past.add(experiment, 1000);
  const Forecast small = past.of(work_of(experiment));
  config::Experiment larger = experiment;
  larger.model.num_layers *= 10;
  const Forecast large = past.of(work_of(larger));
  REQUIRE(large.seconds.value() > 2 * small.seconds.value());
  REQUIRE(large.memory_bytes.value() > 2 * small.memory_bytes.value());
  experiment.train.eval_rows = 500;
  REQUIRE(past.of(work_of(experiment)).seconds.value() > small.seconds.value());

  past.add(larger, 400);  // more operations a second
  REQUIRE(past.of(work_of(larger)).seconds.value() < large.seconds.value());
  config::Experiment between = small_experiment();
  between.model.num_layers *= 3;
  const double seconds = past.of(work_of(between)).seconds.value();
  REQUIRE(seconds > small.seconds.value());
  REQUIRE(seconds < past.of(work_of(larger)).seconds.value());
}

TEST_CASE("runs on other devices, in other precisions or without an end tell no time",
          "[store][forecast]") {
  const config::Experiment experiment = small_experiment();
  const auto seconds_after = [&](const std::function<void(RunSummary&)>& edit) {
    Past past;
    edit(past.add(experiment, 1000));
    return past.of(work_of(experiment)).seconds;
  };
  REQUIRE(seconds_after([](RunSummary&) {}));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.device_name = "another"; }));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.device_type = "cuda"; }));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.threads = 1; }));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.status = run::RunState::failed; }));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.metrics.clear(); }));
  REQUIRE_FALSE(seconds_after([](RunSummary& run) { run.processes = "2"; }));
  Past past;
  config::Experiment other = experiment;
  other.train.precision = model::Precision::bfloat16;
  past.add(other, 1000);
  REQUIRE_FALSE(past.of(work_of(experiment)).seconds);
  REQUIRE(past.of(work_of(experiment)).memory_bytes);
}

TEST_CASE("a run is forecast by runs of as many processes", "[store][forecast]") {
  config::Experiment experiment = small_experiment();
  experiment.train.gradient_slots = 4;
  Past past;
  past.add(experiment, 1000);
  past.add(experiment, 1900).processes = "2";
  const double tokens = 40.0 * experiment.train.batch_size * experiment.train.seq_len;
  REQUIRE(past.of(work_of(experiment)).seconds.value() == Approx(tokens / 1000));
  experiment.parallel.processes.count = 2;
  REQUIRE(past.of(work_of(experiment)).seconds.value() == Approx(tokens / 1900));
  experiment.parallel.processes.count = 4;
  REQUIRE_FALSE(past.of(work_of(experiment)).seconds);
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
  REQUIRE(now.waiting[1].seconds.value() > 0);  // by the completed run
  REQUIRE(now.ended.size() == 1);
  REQUIRE(now.devices.size() == 1);
  REQUIRE(now.devices[0].device.name == "cuda:0");
  REQUIRE(now.devices[0].used_units == 24);
  REQUIRE(now.warnings.empty());
}

TEST_CASE("a run that failed and waits to go on has not ended", "[store][overview]") {
  TemporaryFolder runs;
  make_failed_run(runs.path(), made_with_steps("again"), 10, "its supervisor was killed");
  make_failed_run(runs.path(), made_with_steps("broken"), 10, "no");
  queue::Queue(runs.path()).put(entry("again"));
  ResultStore store(runs / "forge.sqlite");
  const Overview now = overview(store, runs.path(), 5);
  REQUIRE(now.waiting.size() == 1);
  CHECK(now.waiting[0].entry.run == "again");
  REQUIRE(now.ended.size() == 1);
  CHECK(now.ended[0].id == "broken");
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
