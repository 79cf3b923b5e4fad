#include "core/run/plan.h"

#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/run/event_log.h"
#include "core/run/program_hash.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/run/saved_plan.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using tests::append_line;
using tests::contains;
using tests::error_of;
using tests::new_run;
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
  PlannedRun running = again;
  running.action = Action::running;
  REQUIRE(changed_settings(running, second).size() == 1);
  running.action = Action::cached;
  REQUIRE(changed_settings(running, second).empty());
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

TEST_CASE("nothing is changed of a run that waits on another host", "[run][plan]") {
  const TemporaryFolder runs;
  RunInputs inputs = small_inputs();
  const RunFolder folder = plan_run(inputs, runs.path(), false).folder;
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  queue::QueueEntry entry;
  entry.run = folder.id();
  entry.group = "theirs";
  entry.host = "there";
  entry.devices = {{"cuda:0", queue::gpu_units}};
  queue::Queue(runs.path()).add(entry);
  runs.write(".queue/hosts/there", "");
  CHECK(queue::waits_elsewhere(runs.path(), folder.id()));
  const std::string before = read_file(folder.request_file());
  inputs.experiment["train"]["keep_checkpoints"] = 7;
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(read_file(folder.request_file()) == before);
  fs::remove(runs / ".queue/hosts/there");  // nobody serves it
  CHECK_FALSE(queue::waits_elsewhere(runs.path(), folder.id()));
  write_run_folder(plan_run(inputs, runs.path(), false), inputs);
  CHECK(read_file(folder.request_file()) != before);
}

}  // namespace
}  // namespace forge::run
