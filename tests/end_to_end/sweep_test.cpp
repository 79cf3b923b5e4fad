// Sweeps that search: successive halving, interrupted and driven by two commands.
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/parallel.h"
#include "core/run/queue/queue.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

constexpr int steps = 1000;  // so many that no run is completed before it can be stopped

/// Six learning rates, compared after 20, 60, 180 and 540 of 1,000 steps.
std::vector<std::string> search(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = tiny({"run", "train_canon_a"}, steps);
  for (const char* argument : {"--set",
                               "train.eval_every=20",
                               "--set",
                               "train.log_every=20",
                               "--sweep",
                               "optimizer.lr=log(1e-4,1e-1,6)",
                               "--halving",
                               "20",
                               "--jobs",
                               "1"})
    arguments.emplace_back(argument);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

constexpr const char* expected =
    "6 runs to step 20, 2 to step 60, 1 to step 180, 1 to step 540, 1 to step 1,000";

/// Of a search that has ended: what became of each run.
struct Ends {
  std::map<std::string, double> completed;    ///< eval_loss by id
  std::map<std::string, std::string> halved;  ///< the reason by id
};

Ends ends_in(const Program& forge) {
  Ends ends;
  for (const json& run : json::parse(forge.call({"runs", "--json"}).out)) {
    const std::string id = run.at("id"), status = run.at("status");
    INFO(run.dump());
    if (status == "completed") {
      ends.completed[id] = run.at("eval_loss");
    } else {
      REQUIRE(status == "stopped");
      ends.halved[id] = run.at("failure_reason");
    }
  }
  return ends;
}

/// Where the others were stopped.
std::multiset<std::string> rungs_of(const Ends& ends) {
  std::multiset<std::string> rungs;
  for (const auto& [id, reason] : ends.halved) {
    INFO(id << ": " << reason);
    REQUIRE(reason.find("stopped at ") == 0);
    REQUIRE(reason.find(" of 1,000 steps by halving") != std::string::npos);
    rungs.insert(reason.substr(11, reason.find(' ', 11) - 11));
  }
  return rungs;
}

int workers_started(const Program& forge) {
  int started = 0;
  for (const json& run : json::parse(forge.call({"runs", "--json"}).out))
    started += run.at("attempts").get<int>();
  return started;
}

TEST_CASE("halving completes the best run and leaves the others as stopped ones") {
  const Program forge;
  const Outcome plan = forge.call(search({"--dry-run"}));
  REQUIRE(plan.out.find(expected + std::string(": 1,140 of 6,000 steps; at most")) !=
          std::string::npos);
  const Outcome searched = forge.call(search({"--json"}));
  INFO(searched.err);
  REQUIRE(searched.exit_code == 0);
  const Ends ends = ends_in(forge);
  REQUIRE(ends.completed.size() == 1);
  REQUIRE(ends.halved.size() == 5);
  for (const auto& [id, reason] : ends.halved)
    REQUIRE_FALSE(std::filesystem::exists(forge.runs_dir() / id / "DONE"));
  REQUIRE(rungs_of(ends) == std::multiset<std::string>{"20", "20", "20", "20", "60"});
  const json results = json::parse(searched.out);
  REQUIRE(results.size() == 6);
  REQUIRE(results[0].at("id") == ends.completed.begin()->first);
  REQUIRE(searched.err.find(expected + std::string("; 1,140 of 6,000 steps")) != std::string::npos);

  // Nothing is left to do, and nothing is done.
  const int before = workers_started(forge);
  REQUIRE(forge.call(search()).exit_code == 0);
  REQUIRE(workers_started(forge) == before);
  const std::string over = forge.call(search({"--dry-run"})).out;
  INFO(over);
  REQUIRE(contains(over, "6 runs: 5 halved, 1 cached\n"));
  REQUIRE(contains(over, "1,140 of 6,000 steps; none is left, the search is over\n"));
  REQUIRE_FALSE(contains(over, "about "));
  for (const json& run : json::parse(forge.call(search({"--dry-run", "--json"})).out))
    REQUIRE(run.at("steps") == 0);

  // Trained in one go the best run has the same bits.
  const Program straight;
  const json config =
      json::parse(read_file(forge.runs_dir() / ends.completed.begin()->first / "config.json"));
  const json rate = config.at("optimizer").at("lr");
  std::vector<std::string> whole = tiny({"run", "train_canon_a", "--json"}, steps);
  for (const std::string& setting : {std::string("train.eval_every=20"),
                                     std::string("train.log_every=20"),
                                     "optimizer.lr=" + rate.dump()})
    whole.insert(whole.end(), {"--set", setting});
  const Outcome trained = straight.call(whole);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  REQUIRE(json::parse(trained.out)[0].at("id") == ends.completed.begin()->first);
  REQUIRE(json::parse(trained.out)[0].at("eval_loss") == ends.completed.begin()->second);
}

TEST_CASE("a search that is interrupted goes on with the same command to the same end") {
  const Program forge, straight;
  const int pid = forge.start(search());
  REQUIRE(wait_until([&] {
    int halved = 0;
    for (const json& run : json::parse(forge.call({"runs", "--json"}).out))
      halved += run.at("status") == "stopped" ? 1 : 0;
    return halved >= 2;
  }));
  REQUIRE(::kill(pid, SIGINT) == 0);
  const Outcome interrupted = Program::wait_for(pid);
  INFO(interrupted.err);
  const Outcome again = forge.call(search());
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  REQUIRE(straight.call(search()).exit_code == 0);
  REQUIRE(ends_in(forge).completed == ends_in(straight).completed);
}

TEST_CASE("a search of which no run ends with a finite loss has no best and says so") {
  const Program forge;
  std::vector<std::string> command = tiny({"run", "train_canon_a"}, 20);
  for (const char* argument :
       {"--set", "train.eval_every=2", "--sweep", "optimizer.lr=1e30,2e30", "--halving", "2"})
    command.emplace_back(argument);
  int before = 0;
  for (int time = 0; time < 2; ++time) {
    const Outcome searched = forge.call(command);
    INFO(searched.err);
    REQUIRE(searched.exit_code == 1);
    REQUIRE(contains(searched.err, "there is no best: no run has a finite eval_loss"));
    if (time == 0) before = workers_started(forge);
    REQUIRE(workers_started(forge) == before);
  }
}

/// The first of these learning rates is by far the best.
std::vector<std::string> search_for_first(const std::string& jobs,
                                          const std::string& rates = "1e-2,1e-6,2e-6,3e-6") {
  std::vector<std::string> arguments = search();
  const auto set = [&](const std::string& option, const std::string& value) {
    *(std::find(arguments.begin(), arguments.end(), option) + 1) = value;
  };
  set("--sweep", "optimizer.lr=" + rates);
  set("--jobs", jobs);
  return arguments;
}

/// Ids of the runs in the queue, in the order of the sweep, once there are so many.
std::vector<std::string> queued_ids(const Program& forge, size_t count) {
  std::map<int64_t, std::string> ids;
  REQUIRE(wait_until([&] {
    ids.clear();
    for (const queue::QueueEntry& entry : queue::read_entries(forge.runs_dir()))
      ids[entry.position] = entry.run;
    return ids.size() == count;
  }));
  std::vector<std::string> list;
  for (const auto& [position, id] : ids) list.push_back(id);
  return list;
}

std::string status_of(const Program& forge, const std::string& id) {
  for (const json& run : json::parse(forge.call({"runs", "--json"}).out)) {
    if (run.at("id") == id) return run.at("status");
  }
  return "";
}

TEST_CASE("a search goes on with a run that an earlier command had left running") {
  Program forge;
  const WorkerGate gate(forge);
  const std::vector<std::string> arguments = search_for_first("1");
  const int first = forge.start(arguments);
  const std::string best = queued_ids(forge, 4)[0];
  REQUIRE(wait_until([&] { return status_of(forge, best) == "running"; }));
  REQUIRE(::kill(first, SIGHUP) == 0);  // its terminal was closed
  REQUIRE(Program::wait_for(first).exit_code == 3);
  const int second = forge.start(arguments);
  REQUIRE(wait_until([&] { return contains(forge.errors(), "already running, following it"); }));
  gate.open();
  const Outcome searched = Program::wait_for(second);
  INFO(searched.err);
  REQUIRE(searched.exit_code == 0);
  REQUIRE(ends_in(forge).completed.count(best) == 1);
}

TEST_CASE("a run that a search stops at a rung goes on for the command that resumes it meanwhile") {
  Program forge;
  const WorkerGate gate(forge);
  const int searching = forge.start(search_for_first("1", "1e-6,1e-2,2e-6,3e-6"));
  const std::string run = queued_ids(forge, 4)[0];
  REQUIRE(wait_until([&] { return status_of(forge, run) == "running"; }));
  const int resuming = forge.start({"runs", "resume", run});
  REQUIRE(wait_until([&] { return contains(forge.errors(), "already, following it"); }));
  gate.open();
  REQUIRE(Program::wait_for(resuming).exit_code == 0);
  REQUIRE(status_of(forge, run) == "completed");
  ::kill(searching, SIGINT);
  Program::wait_for(searching);
}

TEST_CASE("a run that ends while a search is still prepared has not failed to start") {
  if (usable_cores() < 2) return;
  Program forge;
  const WorkerGate gate(forge);
  const std::vector<std::string> arguments = search_for_first("2");
  const int first = forge.start(arguments);
  const std::vector<std::string> ids = queued_ids(forge, 4);
  REQUIRE(wait_until([&] {
    return status_of(forge, ids[0]) == "running" && status_of(forge, ids[1]) == "running";
  }));
  REQUIRE(::kill(first, SIGHUP) == 0);
  REQUIRE(Program::wait_for(first).exit_code == 3);
  // The second command waits for the end of the second run before it looks at the others.
  int supervisor = 0;
  REQUIRE(wait_until([&] {
    for (const queue::QueueEntry& entry : queue::read_entries(forge.runs_dir())) {
      if (entry.run == ids[1]) supervisor = entry.supervisor;
    }
    return supervisor > 0;
  }));
  int second = 0;
  {
    const HeldProcess held(supervisor);
    write_file_atomic(forge.runs_dir() / ids[1] / "stop", "save\n");
    second = forge.start(arguments);
    REQUIRE(wait_until([&] { return contains(forge.errors(), "is stopping; it is resumed"); }));
    gate.open();
    REQUIRE(wait_until([&] { return status_of(forge, ids[0]) == "stopped"; }));
  }
  const Outcome searched = Program::wait_for(second);
  INFO(searched.err);
  REQUIRE_FALSE(contains(searched.err, "not started"));
  REQUIRE(searched.exit_code == 0);
  REQUIRE(ends_in(forge).completed.count(ids[0]) == 1);
}

TEST_CASE("a sweep over a key that changes no result makes one run and says so") {
  const Program forge;
  for (const std::string sweep : {"name=a,b", "train.keep_checkpoints=1,2"}) {
    const Outcome plan =
        forge.call(tiny({"run", "train_canon_ac", "--sweep", sweep, "--dry-run", "--json"}));
    INFO(plan.err);
    REQUIRE(plan.exit_code == 0);
    CHECK(json::parse(plan.out).size() == 1);
    CHECK(contains(plan.err, "): the same run as train_canon_ac (" + sweep.substr(0, 4)));
  }
}

TEST_CASE("two commands drive one search together") {
  const Program forge;
  const int one = forge.start(search()), other = forge.start(search());
  REQUIRE(Program::wait_for(one).exit_code == 0);
  REQUIRE(Program::wait_for(other).exit_code == 0);
  const Ends ends = ends_in(forge);
  REQUIRE(ends.completed.size() == 1);
  REQUIRE(ends.halved.size() == 5);
}

TEST_CASE("a command that joins a search sends the run that trains no further than its rung") {
  Program forge;
  const WorkerGate gate(forge);
  const int one = forge.start(search());
  const std::string first = queued_ids(forge, 6)[0];
  REQUIRE(wait_until([&] { return status_of(forge, first) == "running"; }));
  const int other = forge.start(search());
  REQUIRE(wait_until([&] { return contains(forge.errors(), "already running, following it"); }));
  gate.open();
  REQUIRE(Program::wait_for(one).exit_code == 0);
  REQUIRE(Program::wait_for(other).exit_code == 0);
  const Ends ends = ends_in(forge);
  CHECK(ends.completed.size() == 1);
  CHECK(rungs_of(ends) == std::multiset<std::string>{"20", "20", "20", "20", "60"});
}

TEST_CASE("two runs at a time are halved, too, and one is completed") {
  if (usable_cores() < 2) return;
  const Program forge;
  std::vector<std::string> arguments = search({"--json"});
  *(std::find(arguments.begin(), arguments.end(), "--jobs") + 1) = "2";
  const Outcome searched = forge.call(arguments);
  INFO(searched.err);
  REQUIRE(searched.exit_code == 0);
  const Ends ends = ends_in(forge);
  // Of six at most four reach the second rung, of these two the third, and of these one the last.
  REQUIRE(ends.completed.size() == 1);
  REQUIRE(ends.halved.size() == 5);
  REQUIRE(searched.err.find("the best is train_canon_a (optimizer.lr=") != std::string::npos);
}

TEST_CASE("a random search runs the same points for the same seed") {
  const Program forge;
  const auto points = [&](const std::string& seed) {
    const Outcome plan = forge.call(tiny({"run",
                                          "train_canon_a",
                                          "--sweep",
                                          "optimizer.lr=log_uniform(1e-4,1e-2)",
                                          "--sweep",
                                          "optimizer.weight_decay=uniform(0,0.2)",
                                          "--samples",
                                          "5",
                                          "--sample-seed",
                                          seed,
                                          "--dry-run",
                                          "--json"}));
    INFO(plan.err);
    REQUIRE(plan.exit_code == 0);
    std::vector<std::string> labels;
    for (const json& run : json::parse(plan.out)) labels.push_back(run.at("label"));
    return labels;
  };
  REQUIRE(points("3").size() == 5);
  REQUIRE(points("3") == points("3"));
  REQUIRE(points("3") != points("4"));
}

TEST_CASE("halving chooses by the validation rows where there are some") {
  const Program forge;
  for (const char* backend : {"libtorch", "pytorch"}) {
    INFO(backend);
    if (backend == std::string("pytorch") && !has_python_torch()) continue;
    std::vector<std::string> arguments = tiny({"run", "train_llama"}, 40);
    for (const char* argument : {"--backend",
                                 backend,
                                 "--set",
                                 "train.eval_every=10",
                                 "--set",
                                 "train.validation_rows=3",
                                 "--sweep",
                                 "optimizer.lr=1e-4,1e-3,1e-2",
                                 "--halving",
                                 "10"})
      arguments.emplace_back(argument);
    const Outcome searched = forge.call(arguments);
    INFO(searched.err);
    REQUIRE(searched.exit_code == 0);
    REQUIRE(searched.err.find(
                "halving train_llama by validation_loss: 3 runs to step 10, 1 to step "
                "30, 1 to step 40; 60 of 120 steps\nthe best is train_llama") != std::string::npos);
  }
}

TEST_CASE("a run that another user's search leaves goes on for who asks for the whole of it") {
  Program forge;
  if (::geteuid() != 0) return;  // only root can be two users
  std::filesystem::create_directory(forge.runs_dir());
  for (const auto& folder : {forge.folder().path(), forge.runs_dir()})
    permissions(folder, std::filesystem::perms::all);
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  forge.as_nobody = true;
  constexpr int endless = 1'000'000;
  std::vector<std::string> first_run = tiny({"run", "train_canon_a", "--detach"}, endless);
  *(std::find(first_run.begin(), first_run.end(), "--threads") + 1) =
      std::to_string(usable_cores());
  const Outcome theirs = forge.call(first_run);
  if (theirs.exit_code == 127) return;  // another user cannot reach the build folder
  INFO(theirs.err);
  REQUIRE(theirs.exit_code == 0);
  const std::string first = forge.only_run().filename().string();
  const auto waiting = [&] { return json::parse(forge.call({"status", "--json"}).out)["waiting"]; };
  const int searching = forge.start(search());
  REQUIRE(wait_until([&] { return waiting().size() == 6; }));
  Program own;
  own.environment = forge.environment;
  REQUIRE(own.call({"--version"}).exit_code == 0);  // the files of its output are there
  std::vector<std::string> whole = tiny({"run", "train_canon_a"}, steps);
  for (const char* setting : {"train.eval_every=20",
                              "train.log_every=20",
                              "train.keep_checkpoints=9",
                              "optimizer.lr=0.1"})
    whole.insert(whole.end(), {"--set", setting});
  const int following = own.start(whole);
  REQUIRE(wait_until([&] { return contains(own.errors(), "waiting for its owner, nobody"); }));
  CHECK(contains(own.errors(), "is queued by another user, as they asked for it: train.keep_"));
  REQUIRE(forge.call({"runs", "stop", first}).exit_code == 0);
  const int followed = Program::wait_for(following).exit_code;
  INFO(own.errors());
  CHECK(followed == 0);
  CHECK(contains(own.errors(), "it goes on for this command"));
  CHECK(Program::wait_for(searching).exit_code == 0);
  CHECK(ends_in(forge).completed.size() == 2);
}

TEST_CASE("a run that another user's search trains goes on for who asks for it meanwhile") {
  if (::geteuid() != 0) return;  // only root can be two users
  const std::string asks_by = GENERATE("run", "resume", "search");
  Program forge;
  const WorkerGate gate(forge);
  std::filesystem::create_directory(forge.runs_dir());
  for (const auto& path :
       {forge.folder().path(), forge.runs_dir(), forge.folder() / "gated-worker"})
    permissions(path, std::filesystem::perms::all);
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  Program own;
  own.environment = forge.environment;
  REQUIRE(own.call({"--version"}).exit_code == 0);  // the files of its output are there
  forge.as_nobody = true;
  if (forge.call({"--version"}).exit_code == 127) return;  // it cannot reach the build folder
  const int searching = forge.start(search_for_first("1", "1e-6,1e-2"));
  const std::string run = queued_ids(forge, 2)[0];
  REQUIRE(wait_until([&] { return status_of(forge, run) == "running"; }));
  std::vector<std::string> asked = tiny({"run", "train_canon_a"}, steps);
  for (const char* setting : {"train.eval_every=20", "train.log_every=20"})
    asked.insert(asked.end(), {"--set", setting});
  if (asks_by == "search") {
    asked.insert(asked.end(), {"--sweep", "optimizer.lr=1e-6,2e-6", "--halving", "40"});
  } else {
    asked.insert(asked.end(), {"--set", "optimizer.lr=1e-6"});
  }
  if (asks_by == "resume") asked = {"runs", "resume", run};
  const int asking = own.start(asked);
  REQUIRE(wait_until([&] { return contains(own.errors(), ", following it"); }));
  gate.open();
  const Outcome ended = Program::wait_for(asking);
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
  CHECK(Program::wait_for(searching).exit_code == 0);
  // As far as it was asked for: at least to the rung of the search that began later.
  for (const json& each : json::parse(own.call({"runs", "--json"}).out))
    if (each.at("id") == run) CHECK(each.at("step") >= (asks_by == "search" ? 40 : steps));
}

TEST_CASE("halving refuses runs that it cannot compare") {
  const Program forge;
  const auto says = [&](const std::vector<std::string>& more, const std::string& what) {
    const Outcome refused = forge.call(search(more));
    INFO(refused.err);
    REQUIRE(refused.exit_code == 2);
    REQUIRE(refused.err.find(what) != std::string::npos);
  };
  says({"--seeds", "2"}, "differ in 'seed'");
  says({"--sweep", "data.seed=1,2"}, "differ in 'data'");
  says({"--set", "train.eval_every=3"}, "train.eval_every is 3");
  says({"--detach"}, "--detach cannot be combined with halving");
  says({"--save-plan", forge.folder() / "plan.json"}, "--save-plan cannot be combined");
}

}  // namespace
}  // namespace forge::tests
