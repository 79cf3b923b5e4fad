#include "core/run/saved_plan.h"

#include "core/run/plan.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::small_inputs;
using tests::TemporaryFolder;

SavedRun saved_run(const RunInputs& inputs, const PlannedRun& planned) {
  return {"x (seed=1)",
          inputs.project,
          inputs.workspace,
          inputs.config,
          planned.record.id,
          "abc",
          inputs.experiment,
          inputs.origins,
          planned.record.identity,
          {42, 43},
          {"0123456789ab"}};
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
  REQUIRE(run.planned_seeds == std::vector<int64_t>{42, 43});
  REQUIRE(run.planned_claims == std::vector<std::string>{"0123456789ab"});
  REQUIRE(run.experiment == inputs.experiment);
  REQUIRE(identity_differences(run.identity, plan.runs[0].identity).empty());
  const PlannedRun planned = plan_as_saved(inputs, run, folder.path());
  REQUIRE(planned.record.id == plan.runs[0].id);
  REQUIRE(planned.action == Action::start);
}

TEST_CASE("a forced run of a plan is one run, however often the plan is executed", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  tests::complete(tests::new_run(runs.path()));
  const SavedRun saved = saved_run(inputs, plan_run(inputs, runs.path(), true));
  REQUIRE(contains(saved.id, "-2"));
  const PlannedRun first = plan_as_saved(inputs, saved, runs.path());
  REQUIRE(first.action == Action::start);
  write_run_folder(first, inputs);
  tests::complete(first.folder);
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
                     "its inputs make the run '" + own + "'"));
  }
}

TEST_CASE("what is no plan is refused", "[run][plan]") {
  const TemporaryFolder folder;
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "no plan of runs"},
           {"[]", "no plan of runs"},
           {"{}", "no plan of runs"},
           {R"({"forge_plan": 2})", "a plan of version 2"},
           {R"({"forge_plan": 1})", "plan.json': 'created' is missing"},
           {R"({"forge_plan": 1, "created": 3})", "plan.json': 'created' should be a string"}}) {
    INFO(text);
    folder.write("plan.json", text);
    REQUIRE(contains(error_of([&] { read_plan(folder / "plan.json"); }), error));
  }
}

}  // namespace
}  // namespace forge::run
