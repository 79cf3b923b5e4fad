// Many runs, of several commands, with processes that die.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using nlohmann::json;

constexpr int endless_steps = 1'000'000;

/// A run that needs every core, so that there is one at a time.
std::vector<std::string> on_all_cores(std::vector<std::string> arguments) {
  const auto threads = std::find(arguments.begin(), arguments.end(), "--threads");
  REQUIRE(threads != arguments.end());
  threads[1] = std::to_string(usable_cores());
  return arguments;
}

/// Runs of some seeds that train for a while and save now and then.
std::vector<std::string> runs_of(const std::string& seeds,
                                 int steps,
                                 std::vector<std::string> more) {
  std::vector<std::string> arguments =
      on_all_cores(tiny({"run", "train_canon_a", "--seed", seeds}, steps));
  for (const char* setting :
       {"train.eval_every=0", "train.log_every=10", "train.checkpoint_every=50"})
    arguments.insert(arguments.end(), {"--set", setting});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json status(const Program& forge) { return json::parse(forge.call({"status", "--json"}).out); }

std::vector<json> runs(const Program& forge) {
  return json::parse(forge.call({"runs", "--json"}).out).get<std::vector<json>>();
}

int count(const Program& forge, const std::string& state) {
  const std::vector<json> all = runs(forge);
  return static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const json& run) { return run.at("status") == state; }));
}

/// Of the only run.
int supervisor_of(const Program& forge) {
  const std::string stat = read_file("/proc/" + std::to_string(forge.worker_pid()) + "/stat");
  return std::stoi(stat.substr(stat.rfind(')') + 4));
}

/// Waits until all is done. At no time do more runs run than `most`.
void wait_for_the_end(const Program& forge, size_t most) {
  REQUIRE(wait_until([&] {
    const json now = status(forge);
    REQUIRE(now.at("running").size() <= most);
    return now.at("running").empty() && now.at("waiting").empty();
  }));
}

TEST_CASE("runs with few threads run side by side, no more than were asked for") {
  const size_t jobs = GENERATE(1, 2);
  if (jobs > static_cast<size_t>(usable_cores())) return;
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge
              .call(tiny({"run",
                          "train_canon_a",
                          "--seed",
                          "1..3",
                          "--detach",
                          "--jobs",
                          std::to_string(jobs)},
                         20))
              .exit_code == 0);
  const json begun = status(forge);
  REQUIRE(begun.at("running").size() == jobs);
  REQUIRE(begun.at("waiting").size() == 3 - jobs);
  gate.open();
  wait_for_the_end(forge, jobs);
  REQUIRE(count(forge, "completed") == 3);
}

TEST_CASE("what was left to itself goes on without forge, one run after the other") {
  Program forge;
  const WorkerGate gate(forge);
  const Outcome left = forge.call(runs_of("1..3", 100, {"--detach", "--json"}));
  INFO(left.err);
  REQUIRE(left.exit_code == 0);
  REQUIRE(json::parse(left.out).size() == 3);
  const json now = status(forge);
  REQUIRE(now.at("running").size() == 1);
  REQUIRE(now.at("waiting").size() == 2);
  gate.open();
  wait_for_the_end(forge, 1);
  REQUIRE(count(forge, "completed") == 3);
}

TEST_CASE("a run whose start is refused leaves its devices to the next one") {
  const Program forge;
  REQUIRE(forge.call(runs_of("7", 50, {})).exit_code == 0);
  const std::string base = runs(forge).at(0).at("id");
  const auto detach = [&](const std::string& seed, int steps, std::vector<std::string> more) {
    more.emplace_back("--detach");
    REQUIRE(forge.call(runs_of(seed, steps, more)).exit_code == 0);
  };
  detach("1", endless_steps, {});
  REQUIRE(wait_until([&] { return status(forge).at("running").size() == 1; }));
  const std::string first = status(forge).at("running").at(0).at("id");
  detach("2", 50, {"--set", "train.initial_weights=" + base});
  detach("4", 50, {});
  const std::string last = status(forge).at("waiting").back().at("run");
  detach("3", 50, {});
  std::filesystem::rename(forge.runs_dir() / base, forge.folder() / "gone");
  write_file_atomic(forge.runs_dir() / last / "request.json", "{}\n");
  REQUIRE(forge.call({"runs", "stop", first}).exit_code == 0);
  wait_for_the_end(forge, 1);
  CHECK(count(forge, "failed") == 2);
  CHECK(count(forge, "completed") == 1);
  // Its starter, which holds the queue, was told at once, and did not wait for it in vain.
  const std::string reason = forge.events(forge.runs_dir() / last).back().at("reason");
  INFO(reason);
  CHECK(contains(reason, "did not start: "));
  CHECK(contains(reason, "request.json"));
}

TEST_CASE(
    "a run that could not write what must be kept fails alone, and the next one has its turn") {
  const Program forge;
  const std::string worker =
      (tests_dir().parent_path() / "backends" / "bigram" / "worker.sh").string();
  const std::filesystem::path script = forge.folder() / "worker.sh";
  write_file_atomic(script,
                    "read -r request\n"
                    "case $request in *'\"seed\":1,\"tokenizer\"'*'\"train_tokens\":[{'*)\n"
                    "  printf '%s\\n' \"$request\" | /bin/sh " +
                        worker +
                        " | head -n 1\n"
                        "  printf '{\"event\":\"failed\",\"message\":\"the disk is full\"}\\n'\n"
                        "  exit 4 ;;\n"
                        "esac\n"
                        "printf '%s\\n' \"$request\" | /bin/sh " +
                        worker + "\n");
  const bool detach = GENERATE(false, true);
  std::vector<std::string> command = tiny({"run",
                                           "train_canon_ac",
                                           "--seed",
                                           "1,2",
                                           "--jobs",
                                           "1",
                                           "--set",
                                           "backend=external",
                                           "--set",
                                           "external.command=[/bin/sh, " + script.string() + "]",
                                           "--set",
                                           "data.order=sequential"});
  if (detach) command.emplace_back("--detach");
  const Outcome outcome = forge.call(command);
  INFO(outcome.err);
  CHECK(outcome.exit_code == (detach ? 0 : 4));
  if (detach)
    REQUIRE(wait_until([&] {
      const bool stands_still = !status(forge).at("unserved").is_null();
      return stands_still || count(forge, "failed") + count(forge, "completed") == 2;
    }));
  CHECK(count(forge, "failed") == 1);
  CHECK(count(forge, "completed") == 1);
}

TEST_CASE("the status names the user for whom alone a run waits") {
  using std::filesystem::perms;
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1,2", 20, {"--detach"})).exit_code == 0);
  const std::string id = status(forge).at("waiting").at(0).at("run");
  REQUIRE(status(forge).at("waiting").at(0).at("owner").is_null());
  for (const auto& folder : {forge.folder().path(), forge.runs_dir()})
    permissions(folder, perms::all);
  permissions(forge.runs_dir() / id, perms(0555));
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  forge.as_nobody = true;
  const Outcome listed = forge.call({"status", "--json"});
  const Outcome text = forge.call({"status"});
  const Outcome stop = forge.call({"runs", "stop", "--all"});
  forge.as_nobody = false;
  permissions(forge.runs_dir() / id, perms::owner_all);
  gate.open();
  if (listed.exit_code == 127) return;  // another user cannot reach the build folder
  INFO(listed.err << text.out << stop.err);
  CHECK(json::parse(listed.out).at("waiting").at(0).at("owner").is_string());
  CHECK(contains(text.out, "A run for another user is started by that user's forge alone."));
  CHECK(contains(stop.err, "note: " + id + ": left to its owner, "));
  wait_for_the_end(forge, 1);
  CHECK(count(forge, "completed") == 2);
}

TEST_CASE("a run with a file that one may not write is refused before it is queued", "[hostile]") {
  using std::filesystem::perms;
  Program forge;
  REQUIRE(forge.call(runs_of("1", endless_steps, {"--detach"})).exit_code == 0);
  REQUIRE(wait_until([&] { return forge.steps_done() >= 50; }));
  REQUIRE(forge.call({"runs", "stop", "--all"}).exit_code == 0);
  wait_for_the_end(forge, 1);
  const std::filesystem::path run = forge.only_run();
  permissions(forge.folder().path(), perms::all);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(forge.runs_dir()))
    permissions(entry, perms::all);
  permissions(forge.runs_dir(), perms::all);
  permissions(run / "events.jsonl", perms(0444));
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  forge.as_nobody = true;
  const std::string id = run.filename().string();
  const Outcome detached = forge.call({"runs", "resume", id, "--detach"});
  if (detached.exit_code == 127) return;  // another user cannot reach the build folder
  const bool is_queued = path_exists(forge.runs_dir() / ".queue" / "entries" / id);
  INFO(detached.err);
  CHECK(detached.exit_code == 1);
  CHECK(contains(detached.err, "you may not write to '"));
  CHECK(contains(detached.err, "events.jsonl'"));
  REQUIRE_FALSE(is_queued);  // it would be waited for without end
  const Outcome followed = forge.call({"runs", "resume", id});
  INFO(followed.err);
  CHECK(followed.exit_code == 1);
  CHECK(contains(followed.err, "failed: you may not write to '"));
}

TEST_CASE("a run of a larger priority begins before those that wait already") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1..3", 20, {"--detach"})).exit_code == 0);
  REQUIRE(forge.call(runs_of("9", 20, {"--detach", "--priority", "5"})).exit_code == 0);
  REQUIRE(status(forge).at("waiting")[0].at("priority") == 5);
  REQUIRE(forge.call(runs_of("2", 20, {"--detach", "--priority", "7"})).exit_code == 0);
  const auto priority = [&] { return status(forge).at("waiting").back().at("priority"); };
  REQUIRE(forge.call(runs_of("2", 20, {"--detach", "--priority", "-5"})).exit_code == 0);
  REQUIRE(priority() == -5);
  REQUIRE(forge.call(runs_of("2", 20, {"--detach"})).exit_code == 0);
  REQUIRE(priority() == -5);
  gate.open();
  wait_for_the_end(forge, 1);
  std::vector<json> all = runs(forge);
  std::sort(all.begin(), all.end(), [](const json& a, const json& b) {
    return a.at("updated").get<std::string>() < b.at("updated").get<std::string>();
  });
  REQUIRE(all.size() == 4);
  REQUIRE(all[1].at("seed") == 9);
}

TEST_CASE("a killed supervisor is replaced while forge follows its run, and no number changes") {
  constexpr int steps = 2000;  // of which 100 are seen long before the last
  const Program forge;
  const int pid = forge.start(runs_of("1", steps, {"--json"}));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 100; }));
  REQUIRE(::kill(supervisor_of(forge), SIGKILL) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  const Program other;
  const json straight = json::parse(other.call(runs_of("1", steps, {"--json"})).out);
  const std::vector<json> all = runs(forge);
  REQUIRE(all[0].at("attempts") == 2);
  REQUIRE(all[0].at("eval_loss") == straight[0].at("eval_loss"));
}

TEST_CASE("a stopped supervisor is named by who follows, lists or saves, and a stop continues it") {
  Program forge;
  const WorkerGate gate(forge);
  const int following = forge.start(runs_of("1", 20, {}));
  REQUIRE(wait_until([&] { return !forge.only_run().empty() && forge.worker_pid() > 0; }));
  const int supervisor = supervisor_of(forge);
  const std::string id = forge.only_run().filename().string();
  const std::string pid = std::to_string(supervisor);
  const std::string what =
      "the supervisor (process " + pid + ") is stopped: 'kill -CONT " + pid + "' continues it";
  const HeldProcess held(supervisor);
  REQUIRE(wait_until([&] { return contains(forge.errors(), " waits: " + what); }));
  REQUIRE(status(forge).at("running")[0].at("stopped") == what);
  REQUIRE(contains(forge.call({"status"}).out, id + " waits: " + what));
  for (const std::vector<std::string>& listing :
       std::vector<std::vector<std::string>>{{"runs"}, {"runs", "show", id}})
    REQUIRE(contains(forge.call(listing).err, "warning: run " + id + " waits: " + what));
  const Outcome saved = forge.call({"runs", "save", id, "--wait", "3.1"});
  REQUIRE(contains(saved.err, "waiting for the worker of run '" + id + "' to start; " + what));
  const Outcome stopped = forge.call({"runs", "stop", "--now", id});
  REQUIRE(stopped.exit_code == 0);
  REQUIRE(contains(stopped.out, "stopping now"));
  REQUIRE(Program::wait_for(following).exit_code == 3);
}

TEST_CASE("a gentle stop names the stopped worker that it waits for") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1", 20, {"--detach"})).exit_code == 0);
  REQUIRE(wait_until([&] { return forge.worker_pid() > 0; }));
  const std::string id = forge.only_run().filename().string();
  const HeldProcess held(forge.worker_pid());
  const Outcome stopped = forge.call({"runs", "stop", id});
  REQUIRE(stopped.exit_code == 0);  // it is asked, and stops once it goes on or is taken for hung
  REQUIRE(stopped.out == id + ": stopping after saving a checkpoint\n");
  REQUIRE(contains(stopped.err,
                   "note: " + id + ": the worker (process " + std::to_string(forge.worker_pid()) +
                       ") is stopped: 'kill -CONT "));
  REQUIRE(forge.call({"runs", "stop", "--now", id}).exit_code == 0);
  wait_for_the_end(forge, 1);
}

TEST_CASE("two commands share the queue and no run is done twice") {
  const Program forge;
  const int first = forge.start(runs_of("1..3", 60, {}));
  const int second = forge.start(runs_of("2..4", 60, {}));
  REQUIRE(Program::wait_for(first).exit_code == 0);
  REQUIRE(Program::wait_for(second).exit_code == 0);
  const std::vector<json> all = runs(forge);
  REQUIRE(all.size() == 4);
  for (const json& run : all) {
    REQUIRE(run.at("status") == "completed");
    REQUIRE(run.at("attempts") == 1);
  }
}

TEST_CASE("a stop of runs by a pattern takes those that wait out of the queue") {
  const Program forge;
  REQUIRE(forge.call(runs_of("1..3", endless_steps, {"--detach"})).exit_code == 0);
  const Outcome nobody = forge.call({"runs", "stop", "no_such_*"});
  REQUIRE(nobody.exit_code == 2);
  REQUIRE(contains(nobody.err, "no runs match 'no_such_*'"));
  // A word that is no command of 'forge runs' would be a pattern of no run.
  const Outcome misspelt = forge.call({"runs", "stpo", "x"});
  CHECK(misspelt.exit_code == 2);
  CHECK(contains(misspelt.err, "did you mean 'stop'?"));
  // All three, by a pattern.
  const Outcome stopped = forge.call({"runs", "stop", "train_*", "--json"});
  INFO(stopped.out);
  REQUIRE(json::parse(stopped.out).size() == 3);
  REQUIRE(contains(stopped.out, "removed from the queue"));
  REQUIRE(contains(stopped.out, "stopping after saving a checkpoint"));
  wait_for_the_end(forge, 1);
  REQUIRE(count(forge, "stopped") == 1);
  REQUIRE(count(forge, "not started") == 2);
  // The same command does what is left.
  REQUIRE(forge.call({"runs", "stop", "--all"}).out == "no active or queued runs\n");
}

TEST_CASE("after a failure nothing more begins where that was asked for") {
  const Program forge;
  std::vector<std::string> arguments =
      on_all_cores(tiny({"run", "train_canon_a", "--sweep", "optimizer.lr=1e30,1e-3,2e-3"}, 60));
  SECTION("keep going") {
    const Outcome done = forge.call(arguments);
    INFO(done.err);
    REQUIRE(done.exit_code == 1);
    REQUIRE(count(forge, "completed") == 2);
  }
  SECTION("fail fast") {
    arguments.push_back("--fail-fast");
    const Outcome done = forge.call(arguments);
    INFO(done.err);
    REQUIRE(done.exit_code == 1);
    REQUIRE(contains(done.err, "not started"));
    REQUIRE(count(forge, "failed") == 1);
    REQUIRE(count(forge, "completed") == 0);
  }
  SECTION("fail fast in a search, which sends no run on") {
    for (const char* more : {"--set", "train.eval_every=20", "--halving", "20", "--fail-fast"})
      arguments.emplace_back(more);
    const Outcome done = forge.call(arguments);
    INFO(done.err);
    REQUIRE(done.exit_code == 1);
    REQUIRE(count(forge, "failed") == 1);
    REQUIRE(count(forge, "completed") + count(forge, "stopped") == 0);
  }
}

TEST_CASE("a search whose runs are stopped by a person sends none on") {
  const Program forge;
  std::vector<std::string> arguments = on_all_cores(
      tiny({"run", "train_canon_a", "--sweep", "optimizer.lr=1e-3,2e-3,3e-3"}, endless_steps));
  for (const char* more : {"--set", "train.eval_every=100000", "--halving", "300000"})
    arguments.emplace_back(more);
  const int pid = forge.start(arguments);
  REQUIRE(wait_until([&] { return count(forge, "running") == 1; }));
  REQUIRE(forge.call({"runs", "stop", "--all"}).exit_code == 0);
  const Outcome search = Program::wait_for(pid);
  CHECK(search.exit_code == 3);  // not that there is no best
  CHECK(count(forge, "running") == 0);
  CHECK(status(forge).at("waiting").empty());
}

TEST_CASE("a value that is taken out of a search leaves the others in it") {
  const Program forge;
  const int before = forge.start(on_all_cores(tiny({"run", "train_canon_b"}, endless_steps)));
  REQUIRE(wait_until([&] { return count(forge, "running") == 1; }));
  std::vector<std::string> arguments =
      on_all_cores(tiny({"run", "train_canon_a", "--sweep", "optimizer.lr=1e-3,2e-3,3e-3"}, 60));
  for (const char* more : {"--set", "train.eval_every=20", "--halving", "20"})
    arguments.emplace_back(more);
  const int pid = forge.start(arguments);
  REQUIRE(wait_until([&] { return status(forge).at("waiting").size() == 3; }));
  const std::string second = status(forge).at("waiting").at(1).at("run");
  REQUIRE(forge.call({"runs", "stop", second}).exit_code == 0);
  REQUIRE(forge.call({"runs", "stop", "train_canon_b*"}).exit_code == 0);
  Program::wait_for(before);
  Program::wait_for(pid);
  CHECK(count(forge, "completed") == 1);  // the better of the two others was sent on
}

bool is_running(const Program& forge) {
  const std::filesystem::path run = forge.only_run();
  return !run.empty() && FileLock::is_held(run / "lock");
}

/// How this process, and each program that it starts, treats a signal in the life of this object.
class SignalDisposition {
 public:
  SignalDisposition(int signal, void (*handler)(int))
      : signal_(signal), before_(std::signal(signal, handler)) {}
  ~SignalDisposition() { std::signal(signal_, before_); }
  SignalDisposition(const SignalDisposition&) = delete;
  SignalDisposition& operator=(const SignalDisposition&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

TEST_CASE("closing the terminal ends forge and leaves its runs running and queued") {
  const int signal = GENERATE(SIGHUP, SIGQUIT);
  Program forge;
  const WorkerGate gate(forge);
  const SignalDisposition usual(signal, SIG_DFL);
  const int pid = forge.start(runs_of("1,2", 40, {}));
  REQUIRE(wait_until([&] { return status(forge).at("running").size() == 1; }));
  REQUIRE(::kill(pid, signal) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  REQUIRE(status(forge).at("running").size() == 1);
  REQUIRE(status(forge).at("waiting").size() == 1);
  gate.open();
  wait_for_the_end(forge, 1);
  REQUIRE(count(forge, "completed") == 2);
}

TEST_CASE("a run that is stopped by its path leaves the queue of its own runs folder alone") {
  Program forge;
  const std::string here = forge.runs_dir().string(), there = (forge.folder() / "there").string();
  forge.environment["FORGE_RUNS_DIR"] = there;
  REQUIRE(forge.call(runs_of("2", 20, {})).exit_code == 0);
  forge.environment["FORGE_RUNS_DIR"] = here;
  REQUIRE(forge.call(runs_of("1", endless_steps, {"--detach"})).exit_code == 0);
  REQUIRE(forge.call(runs_of("2", 20, {"--detach"})).exit_code == 0);
  REQUIRE(status(forge).at("waiting").size() == 1);
  const std::string waits = status(forge).at("waiting")[0].at("run");
  const Outcome other = forge.call({"runs", "stop", there + "/" + waits});
  CHECK(contains(other.out, "completed, not running"));
  CHECK(status(forge).at("waiting").size() == 1);
  forge.environment["FORGE_RUNS_DIR"] = there;
  CHECK(contains(forge.call({"runs", "stop", here + "/" + waits}).out, "removed from the queue"));
  forge.environment["FORGE_RUNS_DIR"] = here;
  CHECK(status(forge).at("waiting").empty());
}

TEST_CASE("a run that waits by another user's word is started when their forge has left") {
  Program forge;
  if (::geteuid() != 0) return;  // only root can be two users
  // It was queued here, and taken for another user's.
  const int queueing = forge.start(runs_of("1", endless_steps, {}));
  REQUIRE(wait_until([&] { return forge.steps_done() >= 50; }));
  REQUIRE(forge.call(runs_of("2", 20, {"--detach"})).exit_code == 0);
  const std::string theirs = status(forge).at("waiting")[0].at("run");
  const std::filesystem::path queue = forge.runs_dir() / ".queue";
  constexpr uid_t nobody = 65534;
  REQUIRE(::chown((queue / "entries" / theirs).c_str(), nobody, nobody) == 0);
  const std::filesystem::path sign = queue / "hosts" / ("65534@" + run::host_name());
  write_file_atomic(sign, "");
  const int following = forge.start(runs_of("2", 20, {}));
  REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for its owner, nobody"); }));
  // Half a minute is long ago.
  std::filesystem::last_write_time(
      sign, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  ::kill(queueing, SIGINT);
  CHECK(Program::wait_for(following).exit_code == 0);
  Program::wait_for(queueing);
  CHECK(count(forge, "completed") == 1);
}

TEST_CASE("a run that waits behind another user's is started when that one has ended") {
  Program forge;
  if (::geteuid() != 0) return;  // only root can be two users
  std::filesystem::create_directory(forge.runs_dir());
  for (const auto& folder : {forge.folder().path(), forge.runs_dir()})
    permissions(folder, std::filesystem::perms::all);
  forge.environment["FORGE_CACHE_DIR"] = (forge.folder() / "cache").string();
  forge.as_nobody = true;
  const Outcome theirs = forge.call(runs_of("1", endless_steps, {"--detach"}));
  forge.as_nobody = false;
  if (theirs.exit_code == 127) return;  // another user cannot reach the build folder
  INFO(theirs.err);
  REQUIRE(theirs.exit_code == 0);
  REQUIRE(wait_until([&] { return forge.steps_done() >= 50; }));
  const std::string first = forge.only_run().filename().string();
  // Their commands stop it without looking for who else has asked.
  const Outcome same = forge.call(runs_of("1", endless_steps, {"--detach"}));
  CHECK(same.exit_code == 1);
  CHECK(contains(same.err, "is not queued for you"));
  CHECK(same.out.empty());
  if (GENERATE(true, false)) {
    REQUIRE(forge.call(runs_of("2", 20, {"--detach"})).exit_code == 0);
  } else {  // the terminal closes
    const SignalDisposition usual(SIGHUP, SIG_DFL);
    const int pid = forge.start(runs_of("2", 20, {}));
    REQUIRE(wait_until([&] { return status(forge).at("waiting").size() == 1; }));
    REQUIRE(::kill(pid, SIGHUP) == 0);
    REQUIRE(Program::wait_for(pid).exit_code == 3);
  }
  REQUIRE(forge.call({"runs", "stop", first}).exit_code == 0);
  REQUIRE(wait_until([&] {
    const bool stands_still = !status(forge).at("unserved").is_null();
    return stands_still || count(forge, "completed") == 1;
  }));
  CHECK(count(forge, "completed") == 1);
}

TEST_CASE("runs that wait for a forge which was removed are started by another one") {
  Program forge;
  const std::filesystem::path usual = forge.binary, old = forge.folder() / "old";
  make_directories(old);
  std::filesystem::copy(usual, old / "forge");
  const WorkerGate gate(forge);
  forge.binary = old / "forge";
  const int pid = forge.start(runs_of("1,2", 4, {}));
  REQUIRE(wait_until([&] { return count(forge, "running") == 1; }));
  remove_tree(old);
  forge.binary = usual;
  gate.open();
  REQUIRE(wait_until([&] { return count(forge, "completed") == 1; }));
  if (GENERATE(true, false)) {  // Ctrl-C
    REQUIRE(::kill(pid, SIGINT) == 0);
    const Outcome stopped = Program::wait_for(pid);
    INFO(stopped.err);
    CHECK(stopped.exit_code == 3);
    CHECK(count(forge, "queued") == 0);
    return;
  }
  const auto later = [&] {  // than the last sign of a forge that is where it was
    for (const std::filesystem::path& sign : folder_entries(forge.runs_dir() / ".queue/hosts")) {
      const std::string name = sign.filename().string();
      if (std::count(name.begin(), name.end(), '@') > 1)
        std::filesystem::last_write_time(
            sign, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
    }
  };
  later();
  const std::string waiting = status(forge).at("waiting")[0].at("run");
  CHECK(status(forge).at("unserved") == waiting);
  REQUIRE(forge.call(runs_of("3", 4, {"--detach"})).exit_code == 0);
  CHECK(wait_until([&] { return count(forge, "completed") == 3; }));
  const Outcome followed = Program::wait_for(pid);
  INFO(followed.err);
  CHECK(followed.exit_code == 0);
}

TEST_CASE("a reader of the output that ends leaves the runs as a closed terminal does") {
  const Program forge;
  std::string command = "cd " + shell_quoted(forge.working_directory.string()) + " && ";
  for (const auto& [name, value] : forge.environment)
    command += "export " + name + "=" + shell_quoted(value) + " && ";
  command += shell_quoted(forge.binary.string()) + " " +
             shell_quoted(runs_of("1,2", endless_steps, {})) +
             " 2>&1 | head -n 1 > /dev/null; exit ${PIPESTATUS[0]}";
  const int ended = std::system(("bash -c " + shell_quoted(command)).c_str());
  CHECK(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == 3);
  CHECK(count(forge, "running") == 1);
  CHECK(status(forge).at("waiting").size() == 1);
  REQUIRE(forge.call({"runs", "stop", "--all"}).exit_code == 0);
}

TEST_CASE("a terminal that closes while runs are prepared leaves them queued and exits with 3") {
  const Program forge;
  const SignalDisposition usual(SIGHUP, SIG_DFL);
  REQUIRE(forge.call(runs_of("1", 2, {})).exit_code == 0);  // prepares the data
  const bool detach = GENERATE(false, true);
  int pid = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    std::vector<std::string> command = runs_of("2,3", 2, {});
    if (detach) command.emplace_back("--detach");
    pid = forge.start(command);
    REQUIRE(wait_until([&] { return run::list_runs(forge.runs_dir()).size() > 1; }));
    REQUIRE(::kill(pid, SIGHUP) == 0);
  }
  REQUIRE(Program::wait_for(pid).exit_code == (detach ? 0 : 3));
  wait_for_the_end(forge, 1);
  REQUIRE(count(forge, "completed") == 3);
}

TEST_CASE("signals that come while a backend is asked what it can do end nothing") {
  const Program forge;
  const SignalDisposition usual(SIGHUP, SIG_DFL);
  const int signal = GENERATE(SIGUSR1, SIGHUP);
  const std::filesystem::path asked = forge.folder() / "asked", answer = forge.folder() / "answer";
  const std::filesystem::path worker =
      tests_dir().parent_path() / "backends" / "bigram" / "worker.sh";
  const std::string script = "touch '" + asked.string() + "'; until [ -e '" + answer.string() +
                             "' ]; do sleep 0.05; done; exec /bin/sh '" + worker.string() + "'";
  write_file_atomic(forge.folder() / "slow.sh", script);
  const int pid =
      forge.start(tiny({"run",
                        "train_canon_ac",
                        "--set",
                        "backend=external",
                        "--set",
                        "external.command=[/bin/sh, " + (forge.folder() / "slow.sh").string() + "]",
                        "--set",
                        "data.order=sequential"}));
  REQUIRE(wait_until([&] { return path_exists(asked); }));
  REQUIRE(::kill(pid, signal) == 0);
  write_file_atomic(answer, "");
  const Outcome outcome = Program::wait_for(pid);
  INFO(forge.errors());
  CHECK(outcome.exit_code == (signal == SIGHUP ? 3 : 0));
  wait_for_the_end(forge, 1);
  CHECK(count(forge, "completed") == 1);
}

TEST_CASE("SIGUSR1 saves a checkpoint and ends neither forge nor its run") {
  const Program forge;
  const int pid =
      forge.start(runs_of("1", endless_steps, {"--set", "train.checkpoint_every=900000"}));
  REQUIRE(wait_until([&] { return is_running(forge); }));
  REQUIRE(wait_until([&] { return contains(forge.errors(), "%  step"); }));
  const auto checkpoints = [&] {
    size_t count = 0;
    for (const json& event : forge.events(forge.only_run()))
      count += event.at("event") == "checkpoint" ? 1 : 0;
    return count;
  };
  const size_t before = checkpoints();
  REQUIRE(::kill(pid, SIGUSR1) == 0);
  REQUIRE(wait_until([&] { return checkpoints() > before || !is_running(forge); }));
  REQUIRE(contains(forge.errors(), "for a checkpoint; it goes on"));
  REQUIRE(::kill(supervisor_of(forge), SIGUSR1) == 0);
  const int64_t step = forge.steps_done();
  REQUIRE(wait_until([&] { return forge.steps_done() > step || !is_running(forge); }));
  REQUIRE(::kill(pid, SIGINT) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  REQUIRE(count(forge, "stopped") == 1);
}

TEST_CASE("under nohup forge follows its runs to their ends") {
  Program forge;
  const WorkerGate gate(forge);
  const SignalDisposition nohup(SIGHUP, SIG_IGN);
  const int pid = forge.start(runs_of("1", 40, {}));
  REQUIRE(wait_until([&] { return is_running(forge); }));
  REQUIRE(::kill(pid, SIGHUP) == 0);
  gate.open();
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  REQUIRE(count(forge, "completed") == 1);
}

TEST_CASE("a run ends well under a parent that ignores the ends of its children") {
  Program forge;
  const WorkerGate gate(forge);
  int pid = 0;
  {
    const SignalDisposition ignored(SIGCHLD, SIG_IGN);
    pid = forge.start(runs_of("1", 20, {}));
  }
  gate.open();
  const Outcome ended = Program::wait_for(pid);
  INFO(forge.errors());
  REQUIRE(ended.exit_code == 0);
}

TEST_CASE("Ctrl-C leaves a run that another command has started") {
  const Program forge;
  REQUIRE(forge.call(runs_of("1", endless_steps, {"--detach"})).exit_code == 0);
  const std::string id = forge.only_run().filename().string();
  const int pid = forge.start(runs_of("1", endless_steps, {}));
  REQUIRE(wait_until([&] { return contains(forge.errors(), "%  step"); }));
  REQUIRE(contains(forge.errors(), "already running, following it"));
  REQUIRE(::kill(pid, SIGINT) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  REQUIRE(contains(forge.errors(), "left " + id + " running; 'forge runs stop " + id + "'"));
  REQUIRE(is_running(forge));
  const Outcome again = forge.call(runs_of("1", endless_steps, {"--detach"}));
  REQUIRE(contains(again.err, "already running"));
  REQUIRE_FALSE(contains(again.err, "following"));
  REQUIRE(forge.call({"runs", "stop", id, "--now"}).exit_code == 0);
  wait_for_the_end(forge, 1);
  REQUIRE(count(forge, "stopped") == 1);
}

TEST_CASE("resuming a run that runs already follows it to its end") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1", 40, {"--detach"})).exit_code == 0);
  REQUIRE(wait_until([&] { return is_running(forge); }));
  const std::string id = forge.only_run().filename().string();
  const Outcome left = forge.call({"runs", "resume", id, "--detach"});
  REQUIRE(contains(left.err, id + " is running already\n"));
  const int pid = forge.start({"runs", "resume", id});
  REQUIRE(wait_until([&] { return contains(forge.errors(), "running already, following it"); }));
  gate.open();
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  REQUIRE(count(forge, "completed") == 1);
}

TEST_CASE("Ctrl-C while a run waits withdraws it and exits with 3") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1", 40, {"--detach"})).exit_code == 0);
  const std::string first = forge.only_run().filename().string();
  const int pid = forge.start(runs_of("2", 40, {}));
  REQUIRE(
      wait_until([&] { return contains(forge.errors(), "waiting for cpu: held by " + first); }));
  REQUIRE(::kill(pid, SIGINT) == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  REQUIRE(contains(forge.errors(), "not started"));
  REQUIRE(status(forge).at("waiting").empty());
  const std::vector<json> left = runs(forge);
  REQUIRE(left.size() == 1);
  REQUIRE(left[0].at("id") == first);
  gate.open();
  wait_for_the_end(forge, 1);
}

TEST_CASE("Ctrl-C while runs are prepared and queued leaves nothing of them") {
  const Program forge;
  const int signal = GENERATE(SIGINT, SIGTERM);
  const size_t folders = GENERATE(1, 6);  // while it makes them, and when it has made all
  const bool detach = GENERATE(false, true);
  INFO("signal " << signal << " at " << folders << " folders");
  REQUIRE(forge.call(runs_of("1", 2, {})).exit_code == 0);  // prepares the data
  const std::string before = forge.only_run().filename().string();
  int pid = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    std::vector<std::string> command = runs_of("2..7", 2, {});
    if (detach) command.emplace_back("--detach");
    pid = forge.start(command);
    REQUIRE(wait_until([&] { return run::list_runs(forge.runs_dir()).size() > folders; }));
    REQUIRE(::kill(pid, signal) == 0);
  }
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  INFO(forge.errors());
  REQUIRE(contains(forge.errors(), "interrupted before these runs were started"));
  REQUIRE(status(forge).at("waiting").empty());
  REQUIRE(run::list_runs(forge.runs_dir()).size() == 1);
  REQUIRE(forge.only_run().filename() == before);
}

TEST_CASE("Ctrl-C ends a wait for a queue that another process keeps locked, and says what stays") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1", 40, {"--detach"})).exit_code == 0);
  SECTION("before the runs are in the queue") {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    const int pid = forge.start(runs_of("2,3", 40, {}));
    REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for the queue"); }));
    REQUIRE(::kill(pid, SIGINT) == 0);
    REQUIRE(Program::wait_for(pid).exit_code == 3);
    REQUIRE(contains(forge.errors(), "another process keeps the queue locked"));
    REQUIRE(contains(forge.errors(), "'forge runs rm train_canon_a-"));
  }
  SECTION("while they wait in it") {
    const int pid = forge.start(runs_of("2", 40, {}));
    REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for cpu"); }));
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    REQUIRE(::kill(pid, SIGINT) == 0);
    REQUIRE(Program::wait_for(pid).exit_code == 3);
    REQUIRE(contains(forge.errors(), "in the queue; 'forge runs stop train_canon_a-"));
  }
  gate.open();
  wait_for_the_end(forge, 1);
}

TEST_CASE("a run that another command removes before it is queued does not keep the others") {
  const Program forge;
  REQUIRE(forge.call(runs_of("1", 2, {})).exit_code == 0);  // prepares the data
  const std::string first = forge.only_run().filename().string();
  std::string removed;
  int pid = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    pid = forge.start(runs_of("2,3", 2, {}));
    REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for the queue"); }));
    for (const run::RunFolder& folder : run::list_runs(forge.runs_dir()))
      if (folder.id() != first) removed = folder.id();
    std::filesystem::rename(forge.runs_dir() / removed, forge.folder() / "removed");
  }
  const int exit_code = Program::wait_for(pid).exit_code;
  INFO(forge.errors());
  REQUIRE(exit_code == 3);
  REQUIRE(contains(forge.errors(), "another command has withdrawn or removed it meanwhile"));
  REQUIRE(contains(forge.errors(), "not started; the same command starts it"));
  REQUIRE(count(forge, "completed") == 2);
}

TEST_CASE("runs that a command gives up stay with another one that has prepared them",
          "[hostile]") {
  Program forge;
  const WorkerGate gate(forge);
  const int first = forge.start(runs_of("1..3", 2, {}));
  REQUIRE(wait_until([&] { return status(forge).at("waiting").size() == 2; }));
  int second = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    second = forge.start(runs_of("1..4", 2, {}));
    REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for the queue"); }));
    REQUIRE(::kill(first, SIGINT) == 0);
  }
  gate.open();
  Program::wait_for(first);  // its runs may be over before it gives them up
  const Outcome all = Program::wait_for(second);
  INFO(all.err);
  CHECK(all.exit_code == 0);
  CHECK(count(forge, "completed") == 4);
}

TEST_CASE("who waits for a run is told that another command took it away") {
  Program forge;
  const WorkerGate gate(forge);
  REQUIRE(forge.call(runs_of("1,2", 20, {"--detach"})).exit_code == 0);
  const std::string id = status(forge).at("waiting")[0].at("run").get<std::string>();
  int pid = forge.start({"runs", "logs", "-f", id});
  REQUIRE(wait_until([&] { return contains(forge.errors(), "is queued"); }));
  REQUIRE(forge.call({"runs", "stop", id}).exit_code == 0);
  REQUIRE(Program::wait_for(pid).exit_code == 0);
  CHECK(contains(forge.errors(), "the run is not started; 'forge runs resume " + id + "' starts"));

  const run::RunFolder folder(forge.runs_dir() / id);
  {
    const auto lock = FileLock::acquire(folder.lock_file());  // as a supervisor that still saves
    write_file_atomic(folder.stop_file(), "");
    pid = forge.start({"runs", "resume", id});
    REQUIRE(wait_until([&] { return contains(forge.errors(), "is stopping"); }));
    std::filesystem::rename(folder.path(), forge.folder() / "removed");
  }
  REQUIRE(Program::wait_for(pid).exit_code == 1);
  INFO(forge.errors());
  CHECK(contains(forge.errors(), "run '" + id + "' was removed meanwhile"));
  gate.open();
  wait_for_the_end(forge, 1);
}

TEST_CASE("the doctor says which process keeps the index from it") {
  const Program forge;
  REQUIRE(forge.call(runs_of("1", 2, {})).exit_code == 0);
  int pid = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / "forge.sqlite.writers");
    write_file_atomic(forge.only_run() / "remarks.json", R"({"note":"to be read into the index"})");
    pid = forge.start({"doctor"});
    REQUIRE(wait_until([&] { return contains(forge.errors(), "waiting for the results store"); }));
  }
  Program::wait_for(pid);
}

TEST_CASE("an active run can be stopped while the queue is locked") {
  const Program forge;
  const int pid = forge.start(runs_of("1", endless_steps, {}));
  REQUIRE(wait_until([&] { return is_running(forge); }));
  REQUIRE(wait_until([&] { return contains(forge.errors(), "%  step"); }));
  int stopping = 0;
  {
    const auto lock = FileLock::acquire(forge.runs_dir() / ".queue" / "lock");
    SECTION("Ctrl-C") { REQUIRE(::kill(pid, SIGINT) == 0); }
    SECTION("forge runs stop") { stopping = forge.start({"runs", "stop", "--all"}); }
    REQUIRE(wait_until([&] {
      return !forge.events(forge.only_run()).empty() &&
             forge.events(forge.only_run()).back().at("event") == "ended";
    }));
  }
  REQUIRE(Program::wait_for(pid).exit_code == 3);
  if (stopping != 0) REQUIRE(Program::wait_for(stopping).exit_code == 0);
  REQUIRE(count(forge, "stopped") == 1);
}

TEST_CASE("all commands say the same of how far a run is") {
  const Program forge;
  REQUIRE(forge.call(runs_of("1", endless_steps, {"--detach", "--set", "train.log_every=500000"}))
              .exit_code == 0);
  REQUIRE(wait_until([&] { return runs(forge)[0].at("step") > 10; }));
  {
    const HeldProcess held(forge.worker_pid());
    REQUIRE(wait_until(
        [&] { return status(forge).at("running")[0].at("step") == runs(forge)[0].at("step"); }));
  }
  REQUIRE(forge.call({"runs", "stop", "--all", "--now"}).exit_code == 0);
  wait_for_the_end(forge, 1);
}

/// What a program prints to a terminal of 24 lines of 80 columns.
std::string on_terminal(Program& forge, const std::vector<std::string>& arguments) {
  const FileDescriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  REQUIRE((::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0));
  const std::string name = ::ptsname(terminal.get());
  // Held open, so that the terminal is not closed before the program has opened it.
  const FileDescriptor held(::open(name.c_str(), O_RDWR | O_NOCTTY));
  const winsize size{24, 80, 0, 0};
  REQUIRE(::ioctl(held.get(), TIOCSWINSZ, &size) == 0);
  std::vector<std::string> words = {"-c", "exec \"$0\" \"$@\" >" + name, forge.binary.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  forge.environment["TERM"] = "xterm";
  forge.binary = "/bin/sh";
  const int pid = forge.start(words);
  std::string text;
  bool ended = false;
  while (true) {
    pollfd input{terminal.get(), POLLIN, 0};
    if (::poll(&input, 1, ended ? 0 : 20) <= 0) {
      if (ended) return text;
      ended = ::waitpid(pid, nullptr, WNOHANG) == pid;
      continue;
    }
    char bytes[4096];
    const ssize_t count = ::read(terminal.get(), bytes, sizeof bytes);
    if (count <= 0) return text;
    text.append(bytes, static_cast<size_t>(count));
  }
}

TEST_CASE("a watched status keeps to the height of the terminal and restores its screen") {
  Trained trained("train_llama");
  const std::filesystem::path run = trained.forge.only_run();
  for (int i = 2; i < 40; ++i) std::filesystem::copy(run, run.string() + "-" + std::to_string(i));
  const std::string text = on_terminal(trained.forge, {"status", "--watch", "--ended", "100"});
  INFO(text);
  const size_t begin = text.find("\033[?1049h"), end = text.find("\033[?1049l");
  REQUIRE(begin == 0);
  REQUIRE(end != std::string::npos);
  const std::string screen = text.substr(0, end);
  CHECK(std::count(screen.begin(), screen.end(), '\n') == 23);
  CHECK(contains(screen, " more lines"));
  CHECK(contains(screen, "\033[?25h"));
  CHECK(contains(text.substr(end), run.filename().string() + "-39"));
}

}  // namespace
}  // namespace forge::tests
