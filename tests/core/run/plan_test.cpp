#include "core/run/plan.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/config/experiment.h"
#include "core/run/event_log.h"
#include "core/run/program_hash.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/supervisor.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/other_user.h"

namespace forge::run {
namespace {

using tests::append_line;
using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::save_checkpoint;
using tests::small_inputs;
using tests::TemporaryFolder;
using tests::words_of_other_user;

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

TEST_CASE("a run of the same key and another identity is not taken for the one asked for",
          "[run][plan][hostile]") {
  const TemporaryFolder runs;
  RunInputs first = small_inputs(), second = small_inputs();
  first.experiment["seed"] = 11523694;  // found by trying: half a minute
  second.experiment["seed"] = 5188069;
  const RunFolder run = tests::new_run(runs.path(), first);
  tests::complete(run);
  REQUIRE(plan_run(first, runs.path(), false).action == Action::cached);
  for (const bool force : {false, true}) {
    const std::string fault = error_of([&] { plan_run(second, runs.path(), force); });
    INFO(fault);
    CHECK(contains(fault, "'train_x-0e8ab391236e' is another one than is asked for"));
    CHECK(contains(fault, "its seed is 11523694 and would be 5188069"));
    CHECK(contains(fault, "forge runs rm"));
  }
  // Nor is one that came there since it was planned.
  const TemporaryFolder others;
  const PlannedRun planned = plan_run(second, others.path(), false);
  const RunFolder meanwhile = tests::new_run(others.path(), first);
  CHECK(contains(error_of([&] { write_run_folder(planned, second); }), "another one than"));
  CHECK(meanwhile.record().identity.experiment["seed"] == 11523694);
}

TEST_CASE("a config that nothing would read again is not begun", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  inputs.experiment["description"] = std::string(5u << 20, 'x');
  CHECK(contains(error_of([&] { plan_run(inputs, runs.path(), false); }), "config is too large"));
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
  tests::complete(run);
  REQUIRE(action() == Action::cached);
}

TEST_CASE("a run that is not completed keeps the log interval that it was made with",
          "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  const RunFolder run = tests::new_run(runs.path());
  const std::string before = read_file(run.request_file());
  inputs.experiment["train"]["log_every"] = 500;
  const auto require_refused = [&] {
    const std::string said = error_of([&] { plan_run(inputs, runs.path(), false); });
    CHECK(contains(said, "train.log_every 500 differs from that with which run"));
    CHECK(contains(said, "was made, 1"));
    CHECK(contains(said, "--set train.log_every=1 goes on with the run, --force makes another"));
  };
  require_refused();  // queued
  write_file_atomic(run.events_file(),
                    R"({"attempt":1,"event":"attempt","time":1})"
                    "\n");
  require_refused();  // stopped
  CHECK(plan_run(inputs, runs.path(), true).action == Action::start);
  CHECK(read_file(run.request_file()) == before);
  tests::complete(run);
  CHECK(plan_run(inputs, runs.path(), false).action == Action::cached);
}

TEST_CASE("a run whose record is damaged is not taken for a result", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const RunFolder run = tests::new_run(runs.path());
  tests::complete(run);
  const auto error = [&] {
    const PlannedRun planned = plan_run(inputs, runs.path(), false);
    REQUIRE((planned.action == Action::damaged) == planned.problem.has_value());
    return planned.problem ? planned.problem->message() : "";
  };
  const auto require_refused = [&](const fs::path& file, const std::string& text) {
    const std::string before = read_file(file);
    write_file_atomic(file, text);
    INFO(error());
    REQUIRE(contains(error(), file.filename().string()));
    REQUIRE(plan_run(inputs, runs.path(), true).action == Action::start);  // --force
    write_file_atomic(file, before);
  };
  require_refused(run.record_file(), "{");
  require_refused(run.config_file(), "{");
  require_refused(run.events_file(), "");
  REQUIRE(plan_run(inputs, runs.path(), false).action == Action::cached);
}

TEST_CASE("force plans a run of its own, which then counts", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const PlannedRun first = plan_run(inputs, runs.path(), true);
  REQUIRE(first.record.id == "train_x-" + first.record.key);  // nothing to force
  write_run_folder(first, inputs);
  tests::complete(first.folder);
  for (const char* suffix : {"-2", "-3"}) {
    const PlannedRun forced = plan_run(inputs, runs.path(), true);
    REQUIRE(forced.record.id == first.record.id + suffix);
    REQUIRE(forced.record.key == first.record.key);
    REQUIRE(forced.action == Action::start);
    write_run_folder(forced, inputs);
  }
  REQUIRE(plan_run(inputs, runs.path(), false).record.id == first.record.id + "-3");
}

TEST_CASE("a copy that lies beside its run is not taken for it", "[run][plan][hostile]") {
  const TemporaryFolder runs;
  const RunInputs inputs = small_inputs();
  const PlannedRun first = plan_run(inputs, runs.path(), false);
  write_run_folder(first, inputs);
  const std::string id = first.record.id;
  fs::copy(first.folder.path(), runs / (id + "-20261127"), fs::copy_options::recursive);
  fs::copy(first.folder.path(), runs / (id + "-2147483647"), fs::copy_options::recursive);
  tests::complete(first.folder);
  CHECK(plan_run(inputs, runs.path(), false).record.id == id);
  CHECK(plan_run(inputs, runs.path(), false).action == Action::cached);
  CHECK(plan_run(inputs, runs.path(), true).record.id == id + "-20261128");
  // Without the run it is one that somebody renamed.
  remove_tree(first.folder.path());
  CHECK(plan_run(inputs, runs.path(), false).record.id == id + "-20261127");
}

TEST_CASE("a run that is only linked here is not taken for one's own", "[run][plan][hostile]") {
  const TemporaryFolder runs, others;
  const RunInputs inputs = small_inputs();
  const RunFolder elsewhere = tests::new_run(others.path());
  tests::complete(elsewhere);
  fs::create_directory_symlink(elsewhere.path(), runs / elsewhere.id());
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  CHECK(planned.action == Action::start);
  CHECK(planned.record.id == elsewhere.id() + "-2");
  fs::remove(runs / elsewhere.id());
  fs::create_directory_symlink(others / "none", runs / elsewhere.id());
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(list_runs(runs.path()).size() == 1);
}

TEST_CASE("a project has runs of its own, which its tables show", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs ours = small_inputs();
  tests::complete(tests::new_run(runs.path()));
  RunInputs theirs = ours;
  theirs.project = "projects/two";
  const PlannedRun planned = plan_run(theirs, runs.path(), false);
  REQUIRE(planned.action == Action::start);
  REQUIRE(planned.record.id == "train_x-" + planned.record.key + "-2");
  write_run_folder(planned, theirs);
  tests::complete(planned.folder);
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
  REQUIRE(plan_run(theirs, runs.path(), false).record.id == planned.record.id);
  const PlannedRun own = plan_run(ours, runs.path(), false);
  REQUIRE(own.action == Action::cached);
  REQUIRE(own.record.id == "train_x-" + own.record.key);
  // A removed run of the one takes nothing from the other, and may come back.
  remove_tree(own.folder.path());
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
  REQUIRE(plan_run(ours, runs.path(), false).record.id == own.record.id + "-3");
}

TEST_CASE("configs of one run name have runs of their own", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.config = "a/x";
  theirs.config = "a_x";
  const PlannedRun own = plan_run(ours, runs.path(), false);
  write_run_folder(own, ours);
  tests::complete(own.folder);
  REQUIRE(plan_run(ours, runs.path(), false).action == Action::cached);
  const PlannedRun other = plan_run(theirs, runs.path(), false);
  REQUIRE(other.record.id == own.record.id + "-2");
  // In one plan, of which no run is there yet.
  const std::vector<std::string> taken = {own.record.id + "-2", own.record.id + "-3", "train_y-1"};
  for (const bool force : {false, true})
    REQUIRE(plan_run(theirs, runs.path(), force, taken).record.id == own.record.id + "-4");
  REQUIRE(plan_run(ours, runs.path(), false, taken).action == Action::cached);
}

TEST_CASE("a second command sets anew what changes no number, and of which it tells",
          "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs first = small_inputs();
  first.experiment["train"]["recompute"] = "none";
  RunInputs second = first;
  second.experiment["train"]["recompute"] = "blocks";
  const PlannedRun own = plan_run(first, runs.path(), false);
  REQUIRE(changed_settings(own, first).empty());
  write_run_folder(own, first);
  const PlannedRun again = plan_run(second, runs.path(), false);
  const std::vector<IdentityDifference> changed = changed_settings(again, second);
  REQUIRE(changed.size() == 1);
  REQUIRE(changed[0].what == "train.recompute");
  REQUIRE(changed[0].right == "\"blocks\"");
  write_run_folder(again, second);
  REQUIRE(own.folder.config() == second.experiment);
  REQUIRE(read_request(own.folder).experiment == second.experiment);
  // One that has begun keeps the config that it began with.
  tests::append_attempt(own.folder, 1);
  write_run_folder(plan_run(first, runs.path(), false), first);
  REQUIRE(own.folder.config() == second.experiment);
  REQUIRE(read_request(own.folder).experiment == first.experiment);
}

TEST_CASE("a run that another config has got meanwhile is not taken for one's own", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.config = "a/x";
  theirs.config = "a_x";
  const PlannedRun own = plan_run(ours, runs.path(), false);
  SavedRun saved;
  saved.label = "a/x";
  saved.id = own.record.id;
  saved.identity = own.record.identity;
  write_run_folder(plan_run(theirs, runs.path(), false), theirs);
  REQUIRE(tests::contains(error_of([&] { plan_as_saved(ours, saved, runs.path()); }),
                          "another config or project has got a run of that name"));
  REQUIRE(tests::contains(error_of([&] { write_run_folder(own, ours); }),
                          "another config or project has just got a run of the name"));
}

TEST_CASE("a new run knows the same run of a project that is gone", "[run][plan]") {
  const TemporaryFolder runs, workspace;
  workspace.write("old/meta.yaml", "name: one\n");
  RunInputs before = small_inputs();
  before.workspace = workspace.path().string();
  before.project = "old";
  const PlannedRun old = plan_run(before, runs.path(), false);
  write_run_folder(old, before);
  tests::complete(old.folder);
  RunInputs after = before;
  after.project = "new";
  REQUIRE(plan_run(after, runs.path(), false).orphan == "");
  std::filesystem::rename(workspace / "old", workspace / "new");
  REQUIRE(plan_run(after, runs.path(), false).orphan == old.record.id);
}

TEST_CASE("projects of one path in two workspaces have runs of their own", "[run][plan]") {
  const TemporaryFolder runs, first, second;
  for (const TemporaryFolder* workspace : {&first, &second})
    workspace->write("projects/one/meta.yaml", "name: one\n");
  RunInputs ours = small_inputs(), theirs = small_inputs();
  ours.project = theirs.project = "projects/one";
  ours.workspace = first.path().string();
  theirs.workspace = second.path().string();
  const PlannedRun own = plan_run(ours, runs.path(), false);
  write_run_folder(own, ours);
  tests::complete(own.folder);
  REQUIRE(own.folder.record().workspace == ours.workspace);
  REQUIRE(plan_run(ours, runs.path(), false).action == Action::cached);
  const PlannedRun other = plan_run(theirs, runs.path(), false);
  REQUIRE(other.action == Action::start);
  REQUIRE(other.record.id == own.record.id + "-2");
  // A workspace that was moved keeps its runs.
  std::filesystem::remove_all(first / "projects");
  REQUIRE(plan_run(theirs, runs.path(), false).action == Action::cached);
}

TEST_CASE("programs of one name in two folders are two programs", "[run][plan]") {
  const TemporaryFolder a, b;
  config::ExternalConfig external;
  const auto in = [&](const TemporaryFolder& folder) {
    external.working_directory = folder.path().string();
    return program_hash(external);
  };
  REQUIRE(in(a).empty());  // forge's own backend has no command
  external.command = {"/usr/bin/python3", "worker.py", "--net=net.py", "fast"};
  REQUIRE(in(a) != in(b));  // neither has a file that is named: the folders stand for them
  a.write("worker.py", "1");
  b.write("worker.py", "1");
  REQUIRE(in(a) == in(b));
  b.write("worker.py", "2");
  REQUIRE(in(a) != in(b));
  b.write("worker.py", "1");
  b.write("net.py", "2");
  REQUIRE(in(a) != in(b));
  a.write("net.py", "2");
  a.write("other.py", "not named");
  REQUIRE(in(a) == in(b));
  // A script of a third folder counts wherever it is, but no program that is started, nor much
  // data.
  const TemporaryFolder c;
  const std::string script = c.write("script.py", "1").string();
  external.command = {script, "worker.py"};
  const std::string before = in(a);
  c.write("script.py", "2");
  REQUIRE(in(a) == before);
  external.command = {"/usr/bin/python3", "--file=" + script};
  const std::string second = in(a);
  REQUIRE(in(b) == second);
  c.write("script.py", "1");
  REQUIRE(in(a) != second);
  fs::resize_file(script, (16 << 20) + 1);
  const std::string large = in(a);
  c.write("script.py", std::string((16 << 20) + 1, '.'));
  REQUIRE(in(a) == large);

  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  const std::string without = plan_run(inputs, runs.path(), false).record.key;
  inputs.program = in(a);
  REQUIRE(plan_run(inputs, runs.path(), false).record.key != without);
}

TEST_CASE("a run folder holds all that a supervisor needs", "[run][plan]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  REQUIRE(nlohmann::json::parse(read_file(run.config_file())) == small_inputs().experiment);
  REQUIRE(nlohmann::json::parse(read_file(run.origin_file())) == small_inputs().origins);
  const auto request = worker::request_from_line(read_file(run.request_file()));
  REQUIRE(request.job == worker::Job::train);
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
  REQUIRE(worker::request_from_line(read_file(planned.folder.request_file())).device == "cuda:1");
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
  const auto request = worker::request_from_line(read_file(run.request_file()));
  REQUIRE(request.train_tokens.at(0).path == "/elsewhere/train.tokens");
  REQUIRE(read_file(run.config_file()) == config);
}

TEST_CASE("a request that was damaged is written anew by the command that its error names",
          "[run][plan]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  append_line(run,
              R"({"attempt":1,"event":"attempt","time":1})"
              "\n");
  const std::string good = read_file(run.request_file());
  std::string other_device = good;
  const size_t at = other_device.find("\"device\":\"cpu\"");
  REQUIRE(at != std::string::npos);
  other_device.replace(at, 14, "\"device\":\"CPU\"");
  for (const std::string& bad : {good.substr(0, 100), other_device, std::string("null\n")}) {
    write_file_atomic(run.request_file(), bad);
    REQUIRE(contains(error_of([&] { read_request(run); }), "'forge run train_x' writes it anew"));
    const PlannedRun planned = plan_run(small_inputs(), runs.path(), false);
    REQUIRE(planned.action == Action::resume);
    write_run_folder(planned, small_inputs());
    REQUIRE(read_file(run.request_file()) == good);
  }
}

TEST_CASE("a run folder that this user may not read is planned as damaged, in words",
          "[run][plan][closed]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  fs::permissions(runs.path(), fs::perms::all);
  fs::permissions(run.path(), fs::perms::none);
  const std::string said = words_of_other_user([&] {
    const PlannedRun planned = plan_run(small_inputs(), runs.path(), false);
    return name_of(planned.action) + ": " + (planned.problem ? describe(*planned.problem) : "");
  });
  fs::permissions(run.path(), fs::perms::owner_all);
  CHECK(contains(said, "damaged: error: cannot read the run folder '"));
  CHECK(contains(said, "Permission denied\nhint: its owner can make it readable"));
}

TEST_CASE("a folder that another forge wrote first is taken as it is", "[run][plan]") {
  const TemporaryFolder runs;
  const PlannedRun slow = plan_run(small_inputs(), runs.path(), false);
  const RunFolder run = tests::new_run(runs.path());
  const std::string record = read_file(run.record_file());
  write_run_folder(slow, small_inputs());
  REQUIRE(read_file(run.record_file()) == record);
}

TEST_CASE("no run is written to a runs folder that was moved away meanwhile", "[run][plan]") {
  const TemporaryFolder folder;
  const RunInputs inputs = tests::small_inputs();
  const PlannedRun planned = plan_run(inputs, folder / "runs", false);
  REQUIRE(contains(error_of([&] { write_run_folder(planned, inputs); }), "is not there any more"));
  REQUIRE_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("a run folder without its record is named and left as it is", "[run][plan]") {
  const TemporaryFolder runs;
  const RunInputs inputs = tests::small_inputs();
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  write_run_folder(planned, inputs);
  fs::remove(planned.folder.record_file());
  REQUIRE(contains(error_of([&] { write_run_folder(planned, inputs); }),
                   planned.folder.path().string() + "' has no run.json"));
  REQUIRE(fs::exists(planned.folder.config_file()));
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
class HostEnvironment {
 public:
  HostEnvironment(const char* runs, const fs::path& folder) : before_(fs::current_path()) {
    if (runs)
      ::setenv("FORGE_RUNS_DIR", runs, 1);
    else
      ::unsetenv("FORGE_RUNS_DIR");
    fs::current_path(folder);
  }
  ~HostEnvironment() {
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
    const HostEnvironment none(nullptr, here);
    REQUIRE(runs_dir(here / "workspace") == here / "workspace" / "runs");
    REQUIRE(runs_dir("/proc/1") == here / "runs");  // nobody can make a folder there
  }
  const HostEnvironment chosen("mine", here);
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
  const worker::Request request =
      worker::request_from_line(read_file(planned.folder.request_file()));
  REQUIRE(request.initial_weights == "/models/llama");
  REQUIRE(request.initial_weights_hash == "w1");
}

using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::save_checkpoint;
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

TEST_CASE("a run keeps the seeds that its command planned", "[run][plan]") {
  const TemporaryFolder folder;
  RunInputs inputs = small_inputs();
  inputs.planned_seeds = {42, 43, 44};
  const PlannedRun planned = plan_run(inputs, folder.path(), false);
  REQUIRE(write_run_folder(planned, inputs));
  REQUIRE(planned.folder.record().planned_seeds == inputs.planned_seeds);
  REQUIRE(planned.folder.record().evaluation_rows == inputs.evaluation_tokens.at(0).rows);
  // They are no part of what it computes: the same run with another plan is the same run.
  inputs.planned_seeds = {42};
  REQUIRE(plan_run(inputs, folder.path(), false).record.key == planned.record.key);
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

TEST_CASE("a run that nobody has begun is of the plan of the last command", "[run][plan]") {
  const TemporaryFolder runs;
  const auto ask = [&](std::vector<int64_t> seeds, const std::string& claim) {
    RunInputs inputs = small_inputs();
    inputs.planned_seeds = std::move(seeds);
    inputs.planned_claims = {claim};
    inputs.drawn_order = claim;
    const PlannedRun planned = plan_run(inputs, runs.path(), false);
    write_run_folder(planned, inputs);
    return planned.folder;
  };
  using Seeds = std::vector<int64_t>;
  const RunFolder folder = ask({42, 43, 44}, "a");
  ask({42, 43}, "b");
  CHECK(folder.record().planned_seeds == Seeds{42, 43});
  CHECK(folder.record().planned_claims == std::vector<std::string>{"b"});
  CHECK(folder.record().drawn_order == "b");
  queue::QueueEntry entry;
  entry.run = folder.id();
  entry.group = "a command";
  entry.host = "here";
  entry.devices = {{"cpu", 2}};
  queue::Queue(runs.path()).add(entry);
  ask({42, 43, 44, 45}, "c");  // it waits for more seeds now
  CHECK(folder.record().planned_seeds == Seeds{42, 43, 44, 45});
  CHECK(folder.record().drawn_order == "b");
  ask({42}, "d");  // and still does
  CHECK(folder.record().planned_seeds == Seeds{42, 43, 44, 45});
  queue::Queue(runs.path()).remove(folder.id());
  EventLog(folder.events_file()).append({{"event", "attempt"}}, 1);
  ask({42, 43}, "e");
  CHECK(folder.record().planned_seeds == Seeds{42, 43, 44, 45});
  CHECK(folder.record().planned_claims == std::vector<std::string>{"d"});
}

TEST_CASE("nobody changes what another user has queued", "[run][plan][hostile]") {
  if (::geteuid() != 0) return;  // nobody else can give a file away
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  const RunFolder folder = plan_run(inputs, runs.path(), false).folder;
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  queue::QueueEntry entry;
  entry.run = folder.id();
  entry.group = "theirs";
  entry.host = "here";
  entry.devices = {{"cpu", 2}};
  queue::Queue(runs.path()).add(entry);
  constexpr uid_t nobody = 65534;
  REQUIRE(::chown(queue::entry_file(runs.path(), folder.id()).c_str(), nobody, nobody) == 0);
  const auto files = [&] {
    return read_file(folder.request_file()) + read_file(folder.config_file()) +
           read_file(folder.record_file());
  };
  const std::string before = files();
  inputs.experiment["train"]["keep_checkpoints"] = 7;
  inputs.planned_seeds = {1, 2, 3};
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(files() == before);
  REQUIRE(::chown(queue::entry_file(runs.path(), folder.id()).c_str(), 0, 0) == 0);
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(files() != before);
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

using tests::contains;
using tests::error_of;
using tests::new_run;
using tests::save_checkpoint;
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
