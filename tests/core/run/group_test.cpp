// Several processes as one worker: real ones, shell scripts that know their rank.

#include "core/run/group.h"

#include <sys/stat.h>

#include <csignal>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/event_log.h"
#include "core/run/supervisor.h"
#include "tests/core/run/fixture.h"

namespace forge::run {
namespace {

using namespace tests;

std::string says(const std::string& line) { return "echo '" + line + "'\n"; }

std::string started(int processes) {
  return R"({"event":"started","parameters":1,"first_step":0,"max_steps":3,"tokens_per_step":16384,)"
         R"("gradient_slots":4,"processes":)" +
         std::to_string(processes) + "}";
}

std::string failed(const std::string& message, const std::string& more = "") {
  return R"({"event":"failed","message":")" + message + "\"" + more + "}";
}

const std::string lost = failed("process lost another one", R"(,"retry":true,"lost":true)");

const std::string finishes = says(started(2)) + says(lines::train(1)) + says(lines::finished(true));

/// A run folder whose worker is as many processes as the config says. Each runs the script of its
/// rank after it has read its request and said hello.
class GroupScene {
 public:
  explicit GroupScene(std::vector<std::string> scripts, int processes = 2)
      : folder(new_run(runs_.path(), inputs(processes))) {
    std::string cases;
    for (size_t rank = 0; rank < scripts.size(); ++rank)
      cases += std::to_string(rank) + ") " + scripts[rank] + ";;\n";
    script_ =
        "rank=$FORGE_RANK\ncat > request-$rank\necho $$ > pid.$rank; mv pid.$rank pid-$rank\n" +
        hello_ + "case $rank in\n" + cases + "esac\n";
    options.poll_seconds = 0.02;
    options.retry_waits.clear();
  }

  /// In place of all that every process does.
  void set_script(const std::string& script) { script_ = script; }

  int supervise() {
    worker::LocalLauncher launcher;
    return run::supervise(folder, CommandBackend({"/bin/sh", "-c", script_}), launcher, options);
  }

  nlohmann::json failure() {
    REQUIRE(supervise() == supervised_failed);
    REQUIRE(all_gone());
    return last_event();
  }

  std::string reason() { return failure().at("reason"); }

  std::string story() const {
    std::vector<std::string> names;
    for (const StoredEvent& event : read_events(folder.events_file())) names.push_back(event.name);
    return join(names, " ");
  }
  nlohmann::json last_event() const { return read_events(folder.events_file()).back().json; }
  std::string file(const std::string& name) const {
    const fs::path path = folder.path() / name;
    return fs::exists(path) ? read_file(path) : "";
  }
  /// Whether no process that began to work is left.
  bool all_gone() const {
    for (int rank = 0; rank < 8; ++rank) {
      const std::string pid = file("pid-" + std::to_string(rank));
      if (!pid.empty() && !gone(std::stoi(pid))) return false;
    }
    return true;
  }

  static RunInputs inputs(int processes) {
    RunInputs inputs = small_inputs();
    inputs.experiment["train"]["gradient_slots"] = 4;
    inputs.experiment["train"]["hung_after_seconds"] = 60;
    inputs.experiment["parallel"] = {{"processes", processes}, {"timeout_seconds", 30}};
    return inputs;
  }

 private:
  const std::string hello_ = says(lines::hello) + says(lines::environment);
  TemporaryFolder runs_;

 public:
  RunFolder folder;
  SupervisorOptions options;

 private:
  std::string script_;
};

TEST_CASE("processes of a group get one request and know their ranks", "[run][group]") {
  GroupScene scene({"echo I am first >&2; echo $FORGE_RANKS > ranks\n" + finishes,
                    "echo I am second >&2; exit 0"});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() == "attempt hello environment started train finished ended");
  REQUIRE(scene.file("ranks") == "2\n");
  REQUIRE(scene.file("stderr.log") == "I am first\n");
  REQUIRE(scene.file("stderr-1.log") == "I am second\n");
  const auto request = worker::request_from_line(scene.file("request-0"));
  REQUIRE(scene.file("request-1") == scene.file("request-0"));
  REQUIRE(request.processes->count == 2);
  REQUIRE(request.processes->timeout_seconds == 30);
  const std::string place = request.processes->rendezvous;
  REQUIRE(starts_with(place, "file:/"));
  REQUIRE_FALSE(fs::exists(fs::path(place.substr(5)).parent_path()));
  REQUIRE(worker::request_from_line(read_file(scene.folder.request_file())).processes ==
          std::nullopt);
}

TEST_CASE("processes meet in a new folder of this user's alone", "[run][group][hostile]") {
  GroupScene scene(
      {"place=$(sed 's/.*\"file:\\([^\"]*\\)\".*/\\1/' request-0)\n"
       "stat -c '%a' $(dirname $place) > mode\n"
       "test -e $place || echo nothing >> mode; exit 1",
       "exit 0"});
  scene.failure();
  REQUIRE(scene.file("mode") == "700\nnothing\n");
}

TEST_CASE("a single process is told of no others", "[run][group]") {
  GroupScene scene({"exit 1"}, 1);
  scene.options.retry_waits.clear();
  ::unsetenv(worker::rank_variable);
  scene.supervise();
  REQUIRE(worker::request_from_line(scene.file("request-")).processes == std::nullopt);
  REQUIRE_FALSE(fs::exists(scene.folder.stderr_file(1)));
}

TEST_CASE("a process that dies ends all and is named", "[run][group]") {
  GroupScene scene({"sleep 100", "kill -9 $$"});
  const auto ended = scene.failure();
  REQUIRE(ended.at("reason") == "process 1 was killed by signal 9 (Killed)");
  REQUIRE(ended.at("signal") == 9);
  REQUIRE(ended.at("rank") == 1);
  REQUIRE(contains(ended.at("hint"), "memory"));
}

TEST_CASE("a run goes on after a process was killed", "[run][group]") {
  GroupScene scene({"test -e waits && { " + finishes + "exit 0; }\ntouch waits; sleep 100",
                    "test -e again && exit 0\n"
                    "touch again; until test -e waits; do sleep 0.01; done; kill -9 $$"});
  scene.options.retry_waits = {0};
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() ==
          "attempt hello environment ended attempt hello environment started train finished ended");
  const auto meeting = [&](const std::string& file) {
    return worker::request_from_line(scene.file(file)).processes->rendezvous;
  };
  REQUIRE(meeting("request-0") == meeting("request-1"));
}

TEST_CASE("the reason is that of the process that has one", "[run][group]") {
  const std::string own =
      failed("the disk is full", R"(,"field":"train.checkpoint_every","hint":"free some space")");
  // Process 0 notices first that another one is gone.
  GroupScene late({says(lost) + "exit 1", "echo no space >&2; sleep 0.3\n" + says(own) + "exit 4"});
  REQUIRE(late.supervise() == supervised_storage);
  auto ended = late.last_event();
  REQUIRE(ended.at("reason") == "process 1: train.checkpoint_every: the disk is full");
  REQUIRE(ended.at("hint") == "free some space");
  REQUIRE(ended.at("exit_status") == 4);
  REQUIRE(ended.at("stderr") == nlohmann::json{"no space"});
  REQUIRE(ended.at("retry") == false);
  REQUIRE(late.story() == "attempt hello environment failed ended");
  REQUIRE(read_events(late.folder.events_file())[3].json.at("rank") == 1);

  const std::string after_process_1 =
      "trap '' TERM; until test -s pid-1; do sleep 0.01; done\n"
      "while kill -0 $(cat pid-1) 2> /dev/null; do sleep 0.01; done\n";
  GroupScene early({after_process_1 + says(failed("later")) + "exit 1",
                    "echo $$ > pid-1\n" + says(failed("sooner")) + "exit 1"});
  REQUIRE(early.reason() == "process 1: sooner");

  // One process would have the same numbers.
  const std::string diverged = failed("the loss is no number", R"(,"diverged":true)");
  const std::string of_all = says(started(2)) + says(lines::train(1)) + says(diverged) + "exit 1";
  GroupScene all({of_all, "sleep 0.3\n" + says(diverged) + "exit 1"});
  REQUIRE(all.reason() == "the loss is no number");

  GroupScene killed({says(lost) + "exit 1", "sleep 0.3; kill -9 $$"});
  REQUIRE(killed.reason() == "process 1 was killed by signal 9 (Killed)");

  // A library aborts a process that lost another one. How one dies that is asked to end says
  // nothing.
  GroupScene aborted({"until test -e ready; do sleep 0.01; done; kill -6 $$",
                      "trap 'kill -9 $$' TERM; touch ready; while :; do sleep 0.01; done",
                      "sleep 100",
                      "sleep 100"},
                     4);
  REQUIRE(aborted.reason() == "process 0 was killed by signal 6 (Aborted)");
  GroupScene both({"trap '' TERM; until test -e deaf; do sleep 0.01; done; kill -6 $$",
                   "trap '' TERM; touch deaf; sleep 0.3\n" + says(own) + "exit 1"});
  REQUIRE(both.reason() == "process 1: train.checkpoint_every: the disk is full");
}

TEST_CASE("where all only lost another one the failure names no cause and may be tried again",
          "[run][group]") {
  GroupScene scene({says(lost) + "exit 1", says(lost) + "exit 1"});
  scene.options.retry_waits = {0};
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.last_event().at("reason") == "process lost another one");
  REQUIRE(scene.last_event().at("attempt") == 2);
}

TEST_CASE("a process that ends without a word is named with its log", "[run][group]") {
  GroupScene scene({"sleep 100", "echo oops >&2; exit 7"});
  const auto ended = scene.failure();
  REQUIRE(ended.at("reason") == "process 1 exited without a final event, with exit status 7");
  REQUIRE(contains(ended.at("hint"), "stderr-1.log"));
  REQUIRE(ended.at("stderr") == nlohmann::json{"oops"});
}

TEST_CASE("the others get SIGTERM and then are killed", "[run][group]") {
  worker::LocalLauncher launcher;
  const TemporaryFolder folder;
  const auto launch = [&](const std::string& script) {
    return worker::Launch{{{"/bin/sh", "-c", script}, {}}, "", folder.path(), folder / "stderr"};
  };
  GroupOptions options;
  options.grace_seconds = 0.5;
  const auto group = start_group(launcher,
                                 {launch("trap 'echo asked > asked' TERM\necho up > up\n"
                                         "while :; do sleep 0.01; done"),
                                  launch("until test -e up; do sleep 0.01; done; exit 1")},
                                 options);
  std::optional<worker::ExitStatus> exit;
  while (!exit) {
    const worker::Output output = group->next(10);
    if (const auto* status = std::get_if<worker::ExitStatus>(&output)) exit = *status;
  }
  REQUIRE(exit->rank == 1);
  REQUIRE(exit->code == 1);
  REQUIRE(fs::exists(folder / "asked"));
  REQUIRE(group->members()[0].exit->signal == SIGKILL);
}

TEST_CASE("a stopped process is found and named", "[run][group]") {
  GroupScene scene({"sleep 100", "kill -STOP $$"});
  auto request = nlohmann::json::parse(read_file(scene.folder.request_file()));
  request["experiment"]["train"]["hung_after_seconds"] = 3;
  write_file_atomic(scene.folder.request_file(), request.dump() + "\n");
  scene.options.cpu_seconds = [](int) { return std::optional<double>(0); };
  scene.options.retry_waits = {0};
  const auto ended = scene.failure();
  REQUIRE(contains(ended.at("reason"), "process 0 made no progress for "));
  REQUIRE(contains(ended.at("reason"), "s, and all 2 were killed: process 1 is stopped"));
  REQUIRE(contains(ended.at("reason"), "(SIGSTOP, or a debugger)"));
  REQUIRE(ended.at("attempt") == 2);  // who stopped it may not do so again
}

TEST_CASE("a process that never says hello is named", "[run][group]") {
  GroupScene scene({});
  scene.set_script(
      "rank=$FORGE_RANK\necho $$ > pid.$rank; mv pid.$rank pid-$rank\n"
      "test $rank = 0 && " +
      says(lines::hello) + "sleep 100");
  auto request = nlohmann::json::parse(read_file(scene.folder.request_file()));
  request["experiment"]["train"]["hung_after_seconds"] = 3;
  write_file_atomic(scene.folder.request_file(), request.dump() + "\n");
  scene.options.cpu_seconds = [](int) { return std::optional<double>(0); };
  const auto ended = scene.failure();
  REQUIRE(contains(ended.at("reason"), "process 1 has not said hello"));
  REQUIRE_FALSE(contains(ended.at("reason"), "process 0 has"));
}

TEST_CASE("the processes meet in the run's folder, which keeps nothing of that", "[run][group]") {
  GroupScene scene({"test -e meeting_place && ! test -e meeting_place/stale && touch empty; exit 7",
                    "sleep 100"});
  make_directories(scene.folder.meeting_place());  // of a supervisor that was killed
  write_file_atomic(scene.folder.meeting_place() / "stale", "");
  scene.failure();
  REQUIRE(fs::exists(scene.folder.path() / "empty"));
  REQUIRE_FALSE(fs::exists(scene.folder.meeting_place()));
}

TEST_CASE("a process may fail before the first has said hello", "[run][group]") {
  GroupScene scene({});
  scene.set_script("test $FORGE_RANK = 0 && sleep 100\n" + says(lines::hello) +
                   says(failed("no memory")) + "exit 1");
  REQUIRE(scene.reason() == "process 1: no memory");
}

TEST_CASE("a process that ends because it was asked to is not to blame", "[run][group]") {
  GroupScene scene(
      {"trap '" + std::string("touch asked; exit 3") + "' TERM; while :; do sleep 0.01; done",
       says(lost) + "exit 1"});
  const auto ended = scene.failure();
  REQUIRE(ended.at("reason") == "process lost another one");
  REQUIRE(fs::exists(scene.folder.path() / "asked"));
}

TEST_CASE("a stop is asked of process 0 alone", "[run][group]") {
  GroupScene scene(
      {"trap 'touch stopped' TERM; touch waits\n"
       "until test -e stopped; do sleep 0.01; done\n" +
           says(lines::finished(false)) + "exit 3",
       "trap 'touch asked' TERM; until test -e stopped; do sleep 0.01; done; exit 3"});
  scene.options.periodic_task_seconds = 0.02;
  scene.options.periodic_task = [&] {
    if (fs::exists(scene.folder.path() / "waits") && !fs::exists(scene.folder.stop_file()))
      scene.folder.request_stop(StopRequest::after_checkpoint);
  };
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.all_gone());
  REQUIRE(scene.last_event().at("exit_status") == 3);
  REQUIRE_FALSE(fs::exists(scene.folder.path() / "asked"));
}

TEST_CASE("an immediate stop ends all processes", "[run][group]") {
  GroupScene scene({"touch waits; sleep 100", "trap '' TERM; sleep 100"});
  scene.options.periodic_task_seconds = 0.02;
  scene.options.periodic_task = [&] {
    if (fs::exists(scene.folder.path() / "waits") && !fs::exists(scene.folder.stop_file()))
      scene.folder.request_stop(StopRequest::immediately);
  };
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.all_gone());
}

TEST_CASE("only process 0 speaks", "[run][group]") {
  GroupScene scene({"sleep 100", says(lines::train(1)) + "sleep 100"});
  REQUIRE(scene.reason() ==
          "process 1: it broke the protocol: it said 'train', and process 0 "
          "speaks for all");
  GroupScene rubbish({"sleep 100", "echo Epoch 1; sleep 100"});
  REQUIRE(contains(rubbish.reason(), "process 1: it broke the protocol"));
}

TEST_CASE("processes that do not know of each other are refused", "[run][group]") {
  GroupScene scene({says(started(1)) + "sleep 100", says(started(1)) + "sleep 100"});
  scene.set_script("cat > request-$FORGE_RANK; " + says(lines::hello) + says(started(1)) +
                   "sleep 100");
  REQUIRE(scene.supervise() == supervised_failed);
  const std::string reason = scene.last_event().at("reason");
  REQUIRE((contains(reason, "'processes' of 'started' is 1, and the config has 2") ||
           contains(reason, "process 1: it broke the protocol: it said 'started'")));
}

TEST_CASE("a crash in clean-up after the end changes nothing", "[run][group]") {
  GroupScene scene({finishes + "touch end; sleep 0.2; exit 0",
                    "until test -e end; do sleep 0.01; done; kill -11 $$"});
  REQUIRE(scene.supervise() == supervised_completed);
}

TEST_CASE("no process outlives its supervisor", "[run][group][hostile]") {
  GroupScene scene({"sleep 100", "sleep 100"});
  const auto pid_file = [&](int rank) {
    return scene.folder.path() / ("pid-" + std::to_string(rank));
  };
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    // Nobody is left to remove the place where they meet.
    ::setenv("TMPDIR", scene.folder.path().c_str(), 1);
    scene.supervise();
    ::_exit(0);
  }
  REQUIRE(until([&] { return fs::exists(pid_file(0)) && fs::exists(pid_file(1)); }));
  REQUIRE_FALSE(scene.all_gone());
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  REQUIRE(until([&] { return scene.all_gone(); }));
}

TEST_CASE("what cannot all be started is not started", "[run][group]") {
  class SecondFails : public worker::LocalLauncher {
   public:
    std::unique_ptr<worker::RunningWorker> start(const worker::Launch& launch) override {
      if (++starts > 1) throw Error("no more processes");
      auto worker = LocalLauncher::start(launch);
      pid = worker->pid();
      return worker;
    }
    int starts = 0, pid = 0;
  };
  SecondFails launcher;
  const TemporaryFolder folder;
  const worker::Launch launch{{{"/bin/sleep", "100"}, {}}, "", folder.path(), folder / "stderr"};
  REQUIRE(contains(error_of([&] {
                     start_group(launcher, {launch, launch});
                   }),
                   "no more processes"));
  REQUIRE(launcher.starts == 2);
  REQUIRE(gone(launcher.pid));
}

TEST_CASE("who keeps a group waiting is told by state", "[run][group]") {
  const std::vector<worker::Member> members = {
      {10, true}, {11, true}, {12, false}, {13, true, worker::ExitStatus{3, 0, 3}}, {14, true}};
  const auto suspicion = suspicion_of(members, [](int pid) {
    return pid == 11 ? 'T' : pid == 14 ? 'D' : 'S';
  });
  REQUIRE(suspicion.text ==
          "process 1 is stopped (SIGSTOP, or a debugger), process 2 has not said hello, process 3 "
          "has ended, with exit status 3, process 4 waits for a disk or a device that does not "
          "answer");
  REQUIRE(suspicion.is_outside);
  const auto none = suspicion_of({{10, true}, {11, true}}, [](int) { return 'R'; });
  REQUIRE(none.text == "none of the 2 processes is known to be the cause");
  REQUIRE_FALSE(none.is_outside);
  REQUIRE(process_state(::getpid()) == 'R');
  REQUIRE(process_state(1 << 30) == '\0');
}

}  // namespace
}  // namespace forge::run
