#include "core/run/continuation.h"

#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/run/event_log.h"
#include "core/run/plan.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

RunInputs inputs_of(int64_t max_steps, const std::string& schedule) {
  config::Experiment experiment;
  experiment.train.max_steps = max_steps;
  experiment.train.log_every = 3;
  experiment.schedule.type = schedule;
  RunInputs inputs = tests::small_inputs();
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
  Continuation found(const RunInputs& inputs) const {
    const PlannedRun planned = plan_run(inputs, runs.path(), false);
    return find_continuation(folder, planned.record.identity, inputs.experiment);
  }

  TemporaryFolder runs;
  RunFolder folder;
};

TEST_CASE("a longer run goes on from the newest checkpoint that its schedule allows",
          "[run][continuation]") {
  const Scene scene;
  const Continuation longer = scene.found(inputs_of(9, "constant"));
  REQUIRE(longer.step == 6);
  REQUIRE(longer.checkpoint == scene.folder.checkpoints() / "000000006");
  REQUIRE(scene.found(inputs_of(5, "constant")).step == 3);
  fs::resize_file(scene.folder.checkpoints() / "000000006" / "weights.safetensors", 1);
  REQUIRE(scene.found(inputs_of(9, "constant")).step == 3);
}

TEST_CASE("what stands against going on is said", "[run][continuation]") {
  const Scene scene("cosine");
  const std::string schedule = error_of([&] { scene.found(inputs_of(9, "cosine")); });
  REQUIRE(contains(schedule, "cannot go on from run '" + scene.folder.id() + "'"));
  REQUIRE(contains(schedule, "schedule.type cosine of 9 steps"));
  RunInputs other = inputs_of(9, "constant");
  other.data_fingerprint = "others";
  const std::string data = error_of([&] { scene.found(other); });
  REQUIRE(contains(data, "data_fingerprint is \"d\" and would be \"others\""));
  remove_tree(scene.folder.checkpoints());
  REQUIRE(contains(error_of([&] { scene.found(inputs_of(9, "cosine")); }), "has no checkpoint"));
}

TEST_CASE("the numbers before the checkpoint become those of the run that goes on",
          "[run][continuation]") {
  const Scene scene;
  RunInputs inputs = inputs_of(5, "constant");
  const PlannedRun planned = plan_run(inputs, scene.runs.path(), false);
  inputs.continuation = scene.found(inputs);
  write_run_folder(planned, inputs);
  const auto events = read_events(planned.folder.events_file());
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].attempt == 0);
  REQUIRE(std::get<protocol::TrainMetrics>(*events[0].event).step == 3);
  const auto request = protocol::request_from_line(read_file(planned.folder.request_file()));
  REQUIRE(request.resume_from == inputs.continuation.checkpoint.string());
  REQUIRE(request.identity == planned.record.key);
}

}  // namespace
}  // namespace forge::run
