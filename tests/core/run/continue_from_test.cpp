#include "core/run/continue_from.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/config/experiment.h"
#include "core/run/event_log.h"
#include "core/run/plan.h"
#include "core/run/program_hash.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/run/supervisor.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::save_checkpoint;
using tests::small_inputs;
using tests::TemporaryFolder;

RunInputs inputs_of(int64_t max_steps, const std::string& schedule) {
  config::Experiment experiment;
  experiment.train.max_steps = max_steps;
  experiment.train.log_every = 3;
  experiment.schedule.type = schedule;
  RunInputs inputs = small_inputs();
  inputs.experiment = config::to_json(experiment);
  return inputs;
}

/// A run with checkpoints after steps 3 and 6 of 6, of which `schedule` is known. It was once ended
/// after step 2, within a window.
struct Scene {
  explicit Scene(const std::string& schedule = "constant")
      : folder(plan_run(inputs_of(6, schedule), runs.path(), false).folder) {
    const RunInputs inputs = inputs_of(6, schedule);
    write_run_folder(plan_run(inputs, runs.path(), false), inputs);
    std::string events = R"({"attempt":1,"event":"attempt","time":1})"
                         "\n";
    for (const int step : {2, 3, 6}) {
      if (step != 2) tests::save_checkpoint(folder.checkpoints(), step);
      nlohmann::json line = nlohmann::json::parse(tests::lines::train(step));
      line["time"] = step;
      line["attempt"] = 1;
      events += line.dump() + "\n";
    }
    write_file_atomic(folder.events_file(), events);
  }

  /// What a run that goes on from this one begins with.
  ContinueFrom found(const RunInputs& inputs) const {
    const PlannedRun planned = plan_run(inputs, runs.path(), false);
    return find_continue_checkpoint(
        folder, planned.record.identity, inputs.experiment, inputs.train_tokens, runs.path());
  }

  TemporaryFolder runs;
  RunFolder folder;
};

TEST_CASE("a longer run goes on from the newest checkpoint that its schedule allows",
          "[run][continuation]") {
  const Scene scene;
  const ContinueFrom longer = scene.found(inputs_of(9, "constant"));
  REQUIRE(longer.step == 6);
  REQUIRE(longer.checkpoint == scene.folder.checkpoints() / "000000006");
  REQUIRE(scene.found(inputs_of(5, "constant")).step == 3);
  fs::resize_file(scene.folder.checkpoints() / "000000006" / "weights.safetensors", 1);
  REQUIRE(scene.found(inputs_of(9, "constant")).step == 3);
}

TEST_CASE("what stands against going on is said", "[run][continuation]") {
  const Scene scene("cosine");
  const std::string schedule = error_of([&] { scene.found(inputs_of(9, "cosine")); });
  REQUIRE(contains(schedule, "cannot continue run '" + scene.folder.id() + "'"));
  REQUIRE(contains(schedule, "schedule.type cosine of 9 steps"));
  RunInputs other = inputs_of(9, "constant");
  other.data_fingerprint = "others";
  const std::string data = error_of([&] { scene.found(other); });
  REQUIRE(contains(data, "data_fingerprint is \"d\" and would be \"others\""));
  remove_tree(scene.folder.checkpoints());
  REQUIRE(contains(error_of([&] { scene.found(inputs_of(9, "cosine")); }), "has no checkpoint"));
}

TEST_CASE("no run goes on from one that still trains", "[run][continuation]") {
  const Scene scene;
  const RunLock lock(scene.folder);
  const std::string error = error_of([&] { scene.found(inputs_of(9, "constant")); });
  CHECK(contains(error, "cannot continue run '" + scene.folder.id() + "': it still trains"));
  CHECK(contains(error, "'forge runs stop " + scene.folder.id() + "'"));
}

TEST_CASE("a run that goes on from a marked one is marked, and not yet begun",
          "[run][continuation]") {
  const Scene scene;
  AttemptEnded ended{RunState::stopped};
  ended.changed_inputs = {"train.tokens"};
  EventLog(scene.folder.events_file()).append(ended, 1);
  RunInputs inputs = inputs_of(9, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continue_from = scene.found(inputs);
  write_run_folder(planned, inputs);
  const StoredEvent last = read_events(planned.folder.events_file()).back();
  CHECK(last.attempt == 0);
  CHECK_FALSE(last.ended);
  CHECK(changed_inputs_of(last) == std::vector<std::string>{"train.tokens"});
  CHECK(planned.folder.state() == RunState::not_started);
  CHECK_FALSE(unended_attempt(planned.folder.events_file()));
}

TEST_CASE("a run that goes on from one whose supervisor was killed compares its files with those",
          "[run][continuation]") {
  const Scene scene;
  AttemptStarted started{1, "here", "", {}, {}};
  started.inputs = {{"train.tokens", "1 2 3 4"}};
  EventLog(scene.folder.events_file()).append(started, 1);
  RunInputs inputs = inputs_of(9, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continue_from = scene.found(inputs);
  write_run_folder(planned, inputs);
  CHECK(unended_attempt(planned.folder.events_file()).value().inputs == started.inputs);
}

TEST_CASE("a run does not go on where its rows would have come in another order",
          "[run][continuation]") {
  const Scene scene;
  RunInputs inputs = inputs_of(9, "constant");
  REQUIRE_FALSE(inputs.train_tokens.empty());
  inputs.train_tokens[0].rows += 1000;
  REQUIRE(contains(error_of([&] { scene.found(inputs); }), "shuffled rows, and with 1,0"));
  inputs.experiment["data"]["order"] = "sequential";
  REQUIRE_FALSE(contains(error_of([&] { scene.found(inputs); }), "shuffled rows"));
}

TEST_CASE("a run that continues another one does so again where it was interrupted",
          "[run][continuation]") {
  const Scene scene;
  RunInputs inputs = inputs_of(9, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continue_from = scene.found(inputs);
  write_run_folder(planned, inputs);
  const std::string before = read_file(planned.folder.request_file());
  EventLog(planned.folder.events_file()).append(AttemptStarted{1, "here", "", {}, {}}, 1);
  for (const bool named_again : {true, false}) {
    RunInputs again = inputs_of(9, "constant");
    if (named_again) again.continue_from = inputs.continue_from;
    const PlannedRun resumed = plan_run(again, scene.runs.path(), false);
    REQUIRE(resumed.action == Action::resume);
    write_run_folder(resumed, again);
    REQUIRE(read_file(planned.folder.request_file()) == before);
  }
}

TEST_CASE("a run that waited does not go on from a checkpoint that was damaged meanwhile",
          "[run][continuation][hostile]") {
  const Scene scene;
  RunInputs inputs = inputs_of(5, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continue_from = scene.found(inputs);
  write_run_folder(planned, inputs);
  const fs::path weights = inputs.continue_from.checkpoint / weights::weights_file;
  write_file_atomic(weights, read_file(weights) + "damaged");
  tests::FakeClock clock;
  tests::FakeLauncher launcher(clock, {});  // no worker may be started
  const std::string said =
      error_of([&] { supervise(planned.folder, tests::CommandBackend({"worker"}), launcher, {}); });
  CHECK(contains(said, "the checkpoint that the run goes on from cannot be used"));
  CHECK(launcher.launches.empty());
}

TEST_CASE("a run whose other run was removed while it waited says what brings that one back",
          "[run][continuation]") {
  const TemporaryFolder runs;
  const fs::path other = runs / "train_a-0123456789ab";
  for (const bool continues : {true, false}) {
    RunInputs inputs = small_inputs();
    inputs.experiment["seed"] = continues ? 1 : 2;
    make_directories(RunFolder(other).checkpoints());
    const fs::path checkpoint = save_checkpoint(RunFolder(other).checkpoints(), 1);
    if (continues) {
      inputs.continue_from = {checkpoint, runs.write("events", ""), 1};
    } else {
      inputs.initial_weights = {checkpoint, "w1", "", {}};
    }
    const RunFolder folder = new_run(runs.path(), inputs);
    make_directories(trash_folder(runs.path()) / "1");
    rename_path(other, trash_folder(runs.path()) / "1" / other.filename());
    tests::FakeClock clock;
    tests::FakeLauncher launcher(clock, {});  // no worker may be started
    error_of([&] { supervise(folder, tests::CommandBackend({"worker"}), launcher, {}); });
    const RunStatus status = folder.status();
    CHECK(contains(status.reason, "run 'train_a-0123456789ab', from whose weights it starts, was"));
    CHECK(contains(status.hint, "'forge runs undo' brings it back"));
    CHECK(contains(status.hint, "'forge runs resume " + folder.id() + "' starts this run"));
    CHECK(launcher.launches.empty());
    remove_tree(trash_folder(runs.path()));
  }
}

TEST_CASE("a run whose other run never came to this machine asks for that one, and then goes on",
          "[run][continuation]") {
  const TemporaryFolder runs, away;
  const std::string other = "train_a-0123456789ab";
  RunInputs inputs = small_inputs();
  make_directories(RunFolder(away / other).checkpoints());
  const fs::path there = save_checkpoint(RunFolder(away / other).checkpoints(), 1);
  inputs.continue_from = {there, runs.write("events", ""), 1};
  const RunFolder folder = new_run(runs.path(), inputs);
  remove_tree(away / other);
  tests::FakeClock clock;
  tests::FakeLauncher launcher(clock, {});  // no worker may be started
  error_of([&] { supervise(folder, tests::CommandBackend({"worker"}), launcher, {}); });
  const RunStatus status = folder.status();
  CHECK(contains(status.reason, "run '" + other + "', from whose weights it starts, is not there"));
  CHECK(contains(status.hint, "'forge pack " + other + " --checkpoints' packs it where it is"));
  CHECK(read_request(folder).resume_from == there);
  make_directories(RunFolder(runs / other).checkpoints());
  const fs::path here = save_checkpoint(RunFolder(runs / other).checkpoints(), 1);
  CHECK(read_request(folder).resume_from == here);
}

TEST_CASE("no run goes on from one that has lost its end, or from weights alone",
          "[run][continuation][hostile]") {
  const Scene scene;
  for (const fs::path& checkpoint : weights::list_checkpoints(scene.folder.checkpoints())) {
    const auto state = weights::read_checkpoint_state(checkpoint);
    fs::remove(checkpoint / weights::optimizer_file);
    write_file_atomic(checkpoint / weights::manifest_file,
                      weights::manifest_text(state, checkpoint, {weights::weights_file}));
  }
  RunInputs inputs = inputs_of(9, "constant");
  CHECK(scene.found(inputs).step == 6);  // of a backend whose checkpoints are its own affair
  const std::string alone = error_of(
      [&] { require_optimizer_state(scene.folder.checkpoints() / "000000006", "libtorch"); });
  CHECK(contains(alone, "has the weights alone"));
  CHECK(contains(alone, "--checkpoints"));
  write_file_atomic(scene.folder.done_file(), "");
  CHECK(contains(error_of([&] { scene.found(inputs); }), "the record of run '"));
}

void set_created(const RunFolder& run, const std::string& created) {
  RunRecord record = run.record();
  record.created = created;
  write_file_atomic(run.record_file(), json_text(to_json(record)));
}

/// Makes `run`, whose folder exists, one that was made at that time and told this loss of each step
/// of the list from then on.
void tell(const RunFolder& run,
          const std::string& created,
          const std::vector<int64_t>& steps,
          double loss,
          const std::string& status = "completed") {
  set_created(run, created);
  std::string events = R"({"attempt":1,"event":"attempt","time":1})"
                       "\n";
  for (const int64_t step : steps) {
    const worker::Evaluation evaluation{step, loss, 8, 0.1};
    nlohmann::json line = nlohmann::json::parse(worker::to_line(worker::Event(evaluation)));
    line["time"] = time_from(created).value() + double(step);
    line["attempt"] = 1;
    events += line.dump() + "\n";
  }
  if (status == "stopped") {
    AttemptEnded ended{RunState::stopped};
    write_file_atomic(run.events_file(), events);
    EventLog(run.events_file()).append(ended, 1);
    return;
  }
  write_file_atomic(run.events_file(), events);
}

RunFolder made(const RunInputs& inputs, const fs::path& runs_dir) {
  const PlannedRun planned = plan_run(inputs, runs_dir, true);
  write_run_folder(planned, inputs);
  for (const int step : {3, 6}) tests::save_checkpoint(planned.folder.checkpoints(), step);
  return planned.folder;
}

TEST_CASE("a run that continues a repetition with other losses is known as one",
          "[run][continuation]") {
  const TemporaryFolder runs;
  const RunInputs shorter = inputs_of(6, "constant");
  const RunFolder first = made(shorter, runs.path());
  const RunFolder again = made(shorter, runs.path());
  REQUIRE(again.id() == first.id() + "-2");
  RunInputs longer = inputs_of(9, "constant");
  const auto repeated = [&](const RunFolder& base) {
    const PlannedRun planned = plan_run(longer, runs.path(), true);
    return find_continue_checkpoint(
               base, planned.record.identity, longer.experiment, longer.train_tokens, runs.path())
        .repeats;
  };
  tell(first, "2026-11-20T10:00:00Z", {3, 6}, 2.5);
  tell(again, "2026-11-20T11:00:00Z", {3, 6}, 2.4);
  CHECK(repeated(again) == first.id());
  CHECK(repeated(first) == "");

  SECTION("the first one may have been stopped, and so may the repetition") {
    tell(first, "2026-11-20T10:00:00Z", {3}, 2.5, "stopped");
    CHECK(repeated(again) == first.id());
    tell(again, "2026-11-20T11:00:00Z", {3, 6}, 2.4, "stopped");
    CHECK(repeated(again) == first.id());
  }
  SECTION("one that told nothing yet is no result") {
    tell(first, "2026-11-20T10:00:00Z", {}, 2.5, "stopped");
    CHECK(repeated(again) == "");
  }
  SECTION("one that was planned first and waited is the repetition") {
    tell(first, "2026-11-20T12:00:00Z", {3, 6}, 2.5);
    set_created(first, "2026-11-20T08:00:00Z");
    CHECK(repeated(again) == "");
    CHECK(repeated(first) == again.id());
  }
  SECTION("with the same losses it is the same run, also where the older one is shorter") {
    tell(again, "2026-11-20T11:00:00Z", {3, 6}, 2.5);
    CHECK(repeated(again) == "");
    tell(first, "2026-11-20T10:00:00Z", {3}, 2.5, "stopped");
    CHECK(repeated(again) == "");
  }
  SECTION("an older run of another budget, name and project counts, too") {
    remove_tree(first.path());
    for (RunInputs other : {inputs_of(4, "constant"), inputs_of(20, "constant")}) {
      other.config = "train_other";
      other.project = "projects/other";
      const RunFolder older = made(other, runs.path());
      tell(older, "2026-11-20T09:00:00Z", {3, 4}, 2.6);
      CHECK(repeated(again) == older.id());
      tell(older, "2026-11-20T09:00:00Z", {3, 4}, 2.4);
      CHECK(repeated(again) == "");
      tell(older, "2026-11-20T09:00:00Z", {4}, 2.4);  // of which nothing compares
      CHECK(repeated(again) == older.id());
      remove_tree(older.path());
    }
  }
  SECTION("one of another seed or schedule is another run") {
    remove_tree(first.path());
    RunInputs other = inputs_of(6, "cosine");
    tell(made(other, runs.path()), "2026-11-20T09:00:00Z", {3, 6}, 2.6);
    other = inputs_of(6, "constant");
    other.experiment["seed"] = 7;
    tell(made(other, runs.path()), "2026-11-20T09:00:00Z", {3, 6}, 2.6);
    CHECK(repeated(again) == "");
  }
  SECTION("what continues it stays a repetition when the first run is gone") {
    const PlannedRun planned = plan_run(longer, runs.path(), false);
    longer.continue_from = find_continue_checkpoint(
        again, planned.record.identity, longer.experiment, longer.train_tokens, runs.path());
    write_run_folder(planned, longer);
    CHECK(planned.folder.record().repeats == first.id());
    tests::save_checkpoint(planned.folder.checkpoints(), 9);
    remove_tree(first.path());
    longer = inputs_of(12, "constant");
    CHECK(repeated(planned.folder) == first.id());
    CHECK(repeated(again) == "");
  }
}

TEST_CASE("a run that never began continues the run that is named last", "[run][continuation]") {
  const Scene scene;
  const RunInputs shorter = inputs_of(6, "constant");
  const RunFolder other = made(shorter, scene.runs.path());
  tell(other, "2099-11-20T10:00:00Z", {3, 6}, 2.4);
  RunInputs inputs = inputs_of(9, "constant");
  const auto plan = [&] { return plan_run(inputs, scene.runs.path(), false); };
  REQUIRE(begins_from(plan(), other));
  write_run_folder(plan(), inputs);  // to begin from the start
  const RunFolder run = plan().folder;
  REQUIRE(begins_from(plan(), scene.folder));
  const auto begin_from = [&](const RunFolder& base) {
    RunInputs now = inputs;
    now.continue_from = find_continue_checkpoint(
        base, plan().record.identity, now.experiment, now.train_tokens, scene.runs.path());
    write_run_folder(plan(), now);
    CHECK(fs::equivalent(continued_checkpoint(run), base.checkpoints() / "000000006"));
  };
  begin_from(scene.folder);
  CHECK(read_events(run.events_file()).back().name == "train");
  CHECK(run.record().repeats == "");
  begin_from(other);
  CHECK(read_events(run.events_file()).back().name == "evaluation");
  CHECK(run.record().repeats == scene.folder.id());
  CHECK(run.state() == RunState::not_started);

  queue::QueueEntry entry;
  entry.run = run.id();
  entry.devices = {{"cpu", 1}};
  queue::Queue(scene.runs.path()).put(entry);
  CHECK_FALSE(begins_from(plan(), other));
  const std::string waits = error_of([&] { begins_from(plan(), scene.folder); });
  CHECK(contains(waits,
                 "run '" + run.id() + "' waits to begin from step 6 of run '" + other.id() +
                     "', and does not continue run '" + scene.folder.id() + "'"));
  CHECK(contains(waits, "'forge runs stop " + run.id() + "' takes it out of the queue"));
  queue::Queue(scene.runs.path()).remove(run.id());

  EventLog(run.events_file()).append(AttemptEnded{RunState::stopped}, 1);
  CHECK_FALSE(begins_from(plan(), other));
  CHECK(contains(error_of([&] { begins_from(plan(), scene.folder); }), "began from step 6 of run"));
  remove_tree(run.path());
  write_run_folder(plan(), inputs);
  EventLog(run.events_file()).append(AttemptEnded{RunState::stopped}, 1);
  const std::string began = error_of([&] { begins_from(plan(), other); });
  CHECK(contains(began, "began from its start, and does not continue run '" + other.id() + "'"));
  CHECK(contains(began, "--force makes another run"));
}

TEST_CASE("the numbers before the checkpoint become those of the run that goes on",
          "[run][continuation]") {
  const Scene scene;
  RunInputs inputs = inputs_of(5, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continue_from = scene.found(inputs);
  write_run_folder(planned, inputs);
  const auto events = read_events(planned.folder.events_file());
  REQUIRE(events.size() == 2);
  REQUIRE(events[0].taken_over->started);
  REQUIRE(events[1].attempt == 0);
  REQUIRE(std::get<worker::TrainMetrics>(*events[1].event).step == 3);
  const auto request = worker::request_from_line(read_file(planned.folder.request_file()));
  REQUIRE(request.resume_from == inputs.continue_from.checkpoint.string());
  REQUIRE(request.identity == planned.record.key);
}

}  // namespace
}  // namespace forge::run
