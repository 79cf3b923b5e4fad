#include "core/run/plan.h"

#include "core/base/fs.h"
#include "core/run/runs_dir.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::small_inputs;
using tests::TemporaryFolder;

TEST_CASE("a run's folder is named after its config and its identity", "[run][plan]") {
  const TemporaryFolder runs;
  const PlannedRun planned = plan_run(small_inputs(), runs.path(), false);
  REQUIRE(planned.action == Action::start);
  REQUIRE(planned.record.id == "train_x-" + planned.record.key);
  REQUIRE(planned.folder.path() == runs / planned.record.id);
  REQUIRE(planned.record.identity.threads == 2);
  REQUIRE(planned.record.identity.backend == "fake");

  RunInputs other = small_inputs();
  other.experiment["train"]["log_every"] = 99;
  REQUIRE(plan_run(other, runs.path(), false).record.id == planned.record.id);
  other.experiment["seed"] = 43;
  REQUIRE(plan_run(other, runs.path(), false).record.id != planned.record.id);
  other.config = "sub/train_x";
  REQUIRE(contains(plan_run(other, runs.path(), false).record.id, "sub_train_x-"));
}

TEST_CASE("threads tell runs apart on a CPU only", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  inputs.backend.environment.device_type = "cuda";
  REQUIRE(plan_run(inputs, runs.path(), false).record.identity.threads == 0);
}

TEST_CASE("the action follows the state of the folder", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const auto action = [&] { return plan_run(inputs, runs.path(), false).action; };
  const RunFolder run = tests::new_run(runs.path());
  REQUIRE(action() == Action::start);  // written and never begun
  write_file_atomic(run.events_file(),
                    R"({"attempt":1,"event":"attempt","time":1})"
                    "\n");
  REQUIRE(action() == Action::resume);
  {
    const auto lock = FileLock::try_acquire(run.lock_file());
    REQUIRE(action() == Action::running);
  }
  write_file_atomic(run.done_file(), "");
  REQUIRE(action() == Action::cached);
}

TEST_CASE("force plans a run of its own, which then counts", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const PlannedRun first = plan_run(inputs, runs.path(), true);
  REQUIRE(first.record.id == "train_x-" + first.record.key);  // nothing to force
  write_run_folder(first, inputs);
  write_file_atomic(first.folder.done_file(), "");
  for (const char* suffix : {"-2", "-3"}) {
    const PlannedRun forced = plan_run(inputs, runs.path(), true);
    REQUIRE(forced.record.id == first.record.id + suffix);
    REQUIRE(forced.record.key == first.record.key);
    REQUIRE(forced.action == Action::start);
    write_run_folder(forced, inputs);
  }
  REQUIRE(plan_run(inputs, runs.path(), false).record.id == first.record.id + "-3");
}

TEST_CASE("a run folder holds all that a supervisor needs", "[run][plan]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  REQUIRE(nlohmann::json::parse(read_file(run.config_file())) == small_inputs().experiment);
  REQUIRE(nlohmann::json::parse(read_file(run.origin_file())) == small_inputs().origins);
  const auto request = protocol::request_from_line(read_file(run.request_file()));
  REQUIRE(request.job == protocol::Job::train);
  REQUIRE(request.run_dir == run.path().string());
  REQUIRE(request.experiment == small_inputs().experiment);
  REQUIRE(request.train_tokens.at(0).rows == 10);
  REQUIRE(request.device == "cpu");
  REQUIRE(request.threads == 2);
  REQUIRE(std::distance(fs::directory_iterator(runs.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a device that the user chose is the one that is asked for", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  inputs.backend.environment.device_type = "cuda";
  inputs.device = "cuda:1";
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  write_run_folder(planned, inputs);
  REQUIRE(protocol::request_from_line(read_file(planned.folder.request_file())).device == "cuda:1");
}

TEST_CASE("going on refreshes the request and keeps the rest", "[run][plan]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  const std::string config = read_file(run.config_file());
  write_file_atomic(run.events_file(),
                    R"({"attempt":1,"event":"attempt","time":1})"
                    "\n");
  RunInputs moved = small_inputs();
  moved.experiment["name"] = "renamed";
  moved.train_tokens.at(0).path = "/elsewhere/train.tokens";
  const PlannedRun planned = plan_run(moved, runs.path(), false);
  REQUIRE(planned.action == Action::resume);
  write_run_folder(planned, moved);
  const auto request = protocol::request_from_line(read_file(run.request_file()));
  REQUIRE(request.train_tokens.at(0).path == "/elsewhere/train.tokens");
  REQUIRE(read_file(run.config_file()) == config);
}

TEST_CASE("a folder that another forge wrote first is taken as it is", "[run][plan]") {
  const TemporaryFolder runs;
  const PlannedRun slow = plan_run(small_inputs(), runs.path(), false);
  const RunFolder run = tests::new_run(runs.path());
  const std::string record = read_file(run.record_file());
  write_run_folder(slow, small_inputs());
  REQUIRE(read_file(run.record_file()) == record);
}

TEST_CASE("a run folder that cannot be written leaves nothing behind", "[run][plan]") {
  const TemporaryFolder runs;
  const PlannedRun planned = plan_run(small_inputs(), runs.path(), false);
  runs.write(planned.record.id + "/foreign", "");
  REQUIRE(
      contains(error_of([&] { write_run_folder(planned, small_inputs()); }), planned.record.id));
  REQUIRE(std::distance(fs::directory_iterator(runs.path()), fs::directory_iterator()) == 1);
}

/// Sets an environment variable and the current folder for its scope.
class Surroundings {
 public:
  Surroundings(const char* runs, const fs::path& folder) : before_(fs::current_path()) {
    if (runs)
      ::setenv("FORGE_RUNS_DIR", runs, 1);
    else
      ::unsetenv("FORGE_RUNS_DIR");
    fs::current_path(folder);
  }
  ~Surroundings() {
    ::unsetenv("FORGE_RUNS_DIR");
    fs::current_path(before_);
  }

 private:
  fs::path before_;
};

TEST_CASE("runs lie in the workspace, where that can be written, unless told otherwise",
          "[run][runs_dir]") {
  const TemporaryFolder folder;
  const fs::path here = fs::canonical(folder.path());
  {
    const Surroundings none(nullptr, here);
    REQUIRE(runs_dir(here / "workspace") == here / "workspace" / "runs");
    REQUIRE(runs_dir("/proc/1") == here / "runs");  // nobody can make a folder there
  }
  const Surroundings chosen("mine", here);
  REQUIRE(runs_dir(here / "workspace") == here / "mine");
}

TEST_CASE("a runs folder that cannot be made says where and why and what to do",
          "[run][runs_dir]") {
  const TemporaryFolder folder;
  make_runs_dir(folder / "a/b");
  REQUIRE(fs::is_directory(folder / "a/b"));
  const std::string message = error_of([&] { make_runs_dir(folder.write("file", "") / "runs"); });
  REQUIRE(contains(message, "file/runs"));
  REQUIRE(contains(message, "Not a directory"));
  REQUIRE(contains(message, "FORGE_RUNS_DIR"));
}

TEST_CASE("a run folder gets a copy of the tokenizer and its worker the initial weights",
          "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  inputs.tokenizer = runs.write("cache/tokenizer.json", "{}");
  inputs.initial_weights = {"/models/llama", "w1", "", {}};
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  REQUIRE(planned.record.identity.initial_weights == "w1");
  REQUIRE(planned.record.key != plan_run(small_inputs(), runs.path(), false).record.key);
  write_run_folder(planned, inputs);
  REQUIRE(read_file(planned.folder.tokenizer_file()) == "{}");
  const protocol::Request request =
      protocol::request_from_line(read_file(planned.folder.request_file()));
  REQUIRE(request.initial_weights == "/models/llama");
  REQUIRE(request.initial_weights_hash == "w1");
}

}  // namespace
}  // namespace forge::run
