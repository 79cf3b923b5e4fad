#include "core/run/saved_plan.h"

#include "core/base/fs.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::small_inputs;
using tests::TemporaryFolder;

SavedRun saved_run(const RunInputs& inputs, const PlannedRun& planned) {
  return {"x (seed=1)",
          inputs.project,
          inputs.config,
          planned.record.id,
          "abc",
          inputs.experiment,
          inputs.origins,
          planned.record.identity};
}

TEST_CASE("a plan is read as it was written", "[run][plan]") {
  const TemporaryFolder folder;
  const RunInputs inputs = small_inputs();
  SavedPlan plan;
  plan.created = "2026-11-22T00:00:00Z";
  plan.command = "forge run x";
  plan.device = "cpu";
  plan.threads = 2;
  plan.continue_run = "y-123";
  plan.runs = {saved_run(inputs, plan_run(inputs, folder.path(), false))};
  write_plan(folder / "plan.json", plan);
  const SavedPlan read = read_plan(folder / "plan.json");
  REQUIRE(read.created == plan.created);
  REQUIRE(read.command == plan.command);
  REQUIRE(read.device == "cpu");
  REQUIRE(read.threads == 2);
  REQUIRE(read.continue_run == "y-123");
  REQUIRE(read.runs.size() == 1);
  const SavedRun& run = read.runs[0];
  REQUIRE(run.label == "x (seed=1)");
  REQUIRE(run.revision == "abc");
  REQUIRE(run.experiment == inputs.experiment);
  REQUIRE(to_json(run.identity) == to_json(plan.runs[0].identity));
  const PlannedRun planned = plan_as_saved(inputs, run, folder.path());
  REQUIRE(planned.record.id == plan.runs[0].id);
  REQUIRE(planned.action == Action::start);
}

TEST_CASE("a forced run of a plan is one run, however often the plan is executed", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  write_file_atomic(tests::new_run(runs.path()).done_file(), "");
  const SavedRun saved = saved_run(inputs, plan_run(inputs, runs.path(), true));
  REQUIRE(contains(saved.id, "-2"));
  const PlannedRun first = plan_as_saved(inputs, saved, runs.path());
  REQUIRE(first.action == Action::start);
  write_run_folder(first, inputs);
  write_file_atomic(first.folder.done_file(), "");
  const PlannedRun second = plan_as_saved(inputs, saved, runs.path());
  REQUIRE(second.record.id == saved.id);
  REQUIRE(second.action == Action::cached);
}

TEST_CASE("a plan whose data or device have changed is refused with what differs", "[run][plan]") {
  const TemporaryFolder runs;
  const SavedRun saved = saved_run(small_inputs(), plan_run(small_inputs(), runs.path(), false));
  RunInputs other = small_inputs();
  other.data_fingerprint = "other";
  other.backend.environment.threads = 7;
  const std::string error = error_of([&] { plan_as_saved(other, saved, runs.path()); });
  INFO(error);
  REQUIRE(contains(error, "cannot be executed as it is"));
  REQUIRE(contains(error, "data_fingerprint was"));
  REQUIRE(contains(error, "threads was 2 and is 7"));
}

TEST_CASE("a plan cannot name a folder that is not the run's", "[run][plan]") {
  const TemporaryFolder runs;
  SavedRun saved = saved_run(small_inputs(), plan_run(small_inputs(), runs.path(), false));
  const std::string own = saved.id;
  for (const std::string& id : {std::string("../x"), own + "-", own + "-2/..", std::string()}) {
    saved.id = id;
    REQUIRE(contains(error_of([&] { plan_as_saved(small_inputs(), saved, runs.path()); }),
                     "would be called '" + own + "'"));
  }
}

TEST_CASE("what is no plan is refused", "[run][plan]") {
  const TemporaryFolder folder;
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "no plan of runs"},
           {"[]", "no plan of runs"},
           {"{}", "no plan of runs"},
           {R"({"forge_plan": 2})", "a plan of version 2"},
           {R"({"forge_plan": 1})", "a damaged plan"},
           {R"({"forge_plan": 1, "created": 3})", "a damaged plan"}}) {
    INFO(text);
    folder.write("plan.json", text);
    REQUIRE(contains(error_of([&] { read_plan(folder / "plan.json"); }), error));
  }
}

}  // namespace
}  // namespace forge::run
