// What stays of a run when its supervisor, its worker or its disk gives way in mid-run.
#include <sys/resource.h>

#include <csignal>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/run/event_log.h"
#include "core/run/start.h"
#include "core/run/supervisor.h"
#include "core/worker/launcher.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::CommandBackend;
using tests::contains;
using tests::error_of;
using tests::gone;
using tests::TemporaryFolder;
using tests::until;
namespace lines = tests::lines;

std::string say(const std::string& line) { return "echo '" + line + "'\n"; }

/// A worker that saves a checkpoint after its first step and then waits, unless it is resumed: then
/// it does the second step and finishes.
std::string worker_script() {
  return "read request\n" + say(lines::hello) + say(lines::environment) +
         "case \"$request\" in *'\"resume_from\":\"\"'*) ;; *)\n" + say(lines::train(2)) +
         say(lines::finished(true)) + "exit 0;; esac\n" + say(lines::train(1)) +
         "mv ../saved checkpoints\n" + say(lines::checkpoint(1)) + "exec sleep 100\n";
}

/// Forks a process that supervises the run, as `forge supervise` would.
pid_t fork_supervisor(const RunFolder& run, const CommandBackend& backend) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  int code = 99;
  try {
    worker::LocalLauncher launcher;
    code = supervise(run, backend, launcher);
  } catch (const Error& error) {
    code = static_cast<int>(error.exit_code());
  }
  ::_exit(code);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::vector<std::string> names_in(const RunFolder& run) {
  std::vector<std::string> names;
  for (const StoredEvent& event : read_events(run.events_file())) names.push_back(event.name);
  return names;
}

struct RealRun {
  RealRun() {
    runs.write("worker.sh", worker_script());
    tests::save_checkpoint(runs / "saved", 1);
  }
  bool has_checkpoint() const {
    const auto names = names_in(run);
    return std::find(names.begin(), names.end(), "checkpoint") != names.end();
  }
  int worker_pid() const { return read_events(run.events_file()).at(0).json.at("pid"); }

  TemporaryFolder runs;
  RunFolder run = tests::new_run(runs.path());
  CommandBackend backend{{"/bin/sh", (runs / "worker.sh").string()}};
};

TEST_CASE("killing the supervisor loses nothing acknowledged and the run goes on later",
          "[run][process]") {
  RealRun scene;
  const pid_t supervisor = fork_supervisor(scene.run, scene.backend);
  REQUIRE(until([&] { return scene.has_checkpoint(); }));
  REQUIRE(scene.run.state() == RunState::running);
  const std::string acknowledged = read_file(scene.run.events_file());
  const int worker = scene.worker_pid();

  ::kill(supervisor, SIGKILL);
  REQUIRE(exit_code_of(supervisor) == -SIGKILL);
  REQUIRE(until([&] { return gone(worker); }));
  REQUIRE(read_file(scene.run.events_file()) == acknowledged);
  REQUIRE(scene.run.state() == RunState::failed);
  REQUIRE(contains(scene.run.status().reason, "supervisor was killed"));

  worker::LocalLauncher launcher;
  REQUIRE(supervise(scene.run, scene.backend, launcher) == supervised_completed);
  REQUIRE(read_file(scene.run.events_file()).compare(0, acknowledged.size(), acknowledged) == 0);
  const auto events = read_events(scene.run.events_file());
  REQUIRE(names_in(scene.run) == std::vector<std::string>{"attempt",
                                                          "hello",
                                                          "environment",
                                                          "train",
                                                          "checkpoint",
                                                          "attempt",
                                                          "hello",
                                                          "environment",
                                                          "train",
                                                          "finished",
                                                          "ended"});
  REQUIRE(contains(events[5].json.at("resume_from"), "checkpoints/000000001"));
  REQUIRE(events[5].attempt == 2);
}

TEST_CASE("killing the worker starts a fresh one that goes on", "[run][process]") {
  RealRun scene;
  const pid_t supervisor = fork_supervisor(scene.run, scene.backend);
  REQUIRE(until([&] { return scene.has_checkpoint(); }));
  ::kill(scene.worker_pid(), SIGKILL);
  REQUIRE(exit_code_of(supervisor) == supervised_completed);
  const auto events = read_events(scene.run.events_file());
  REQUIRE(events[5].name == "ended");
  REQUIRE(events[5].json.at("signal") == SIGKILL);
  REQUIRE(events[5].json.at("retry") == true);
  REQUIRE(scene.run.state() == RunState::completed);
}

TEST_CASE("a second supervisor of a run is refused", "[run][process]") {
  RealRun scene;
  const pid_t supervisor = fork_supervisor(scene.run, scene.backend);
  REQUIRE(until([&] { return scene.has_checkpoint(); }));
  worker::LocalLauncher launcher;
  REQUIRE(contains(error_of([&] { supervise(scene.run, scene.backend, launcher); }),
                   "is running already"));
  scene.run.request_stop(StopRequest::immediately);
  REQUIRE(exit_code_of(supervisor) == supervised_stopped);
  REQUIRE(scene.run.state() == RunState::stopped);
}

TEST_CASE("a full disk stops the run and keeps every whole line", "[run][process]") {
  RealRun scene;
  std::string chatty = "read request\n" + say(lines::hello) + say(lines::environment) +
                       "trap 'exit 3' TERM\nwhile :; do\n" + say(lines::train(1)) + "done\n";
  write_file_atomic(scene.runs / "worker.sh", chatty);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    // A limit on the size of files stands in for the full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    worker::LocalLauncher launcher;
    try {
      supervise(scene.run, scene.backend, launcher);
    } catch (const Error& error) {
      ::_exit(contains(describe(error), "events.jsonl") ? static_cast<int>(error.exit_code()) : 98);
    }
    ::_exit(99);
  }
  REQUIRE(exit_code_of(supervisor) == static_cast<int>(ExitCode::storage));
  const std::string events = read_file(scene.run.events_file());
  REQUIRE(events.size() <= 2000);
  REQUIRE(events.back() == '\n');
  REQUIRE(read_events(scene.run.events_file()).size() >= 5);
  REQUIRE(scene.run.state() == RunState::failed);
  REQUIRE(until([&] { return gone(scene.worker_pid()); }));
}

TEST_CASE("a supervisor is started in a session of its own and returns with the lock held",
          "[run][start]") {
  RealRun scene;
  const auto program = scene.runs.write(
      "forge",
      "#!/bin/sh\nexec 9>\"$2/lock\"\nflock 9\necho \"$1\" > \"$2/asked\"\nexec sleep 100\n");
  fs::permissions(program, fs::perms::owner_all);
  const int pid = start_supervisor(scene.run, program);
  REQUIRE(scene.run.state() == RunState::running);
  REQUIRE(::getsid(pid) == pid);
  REQUIRE(until([&] { return fs::exists(scene.run.path() / "asked"); }));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST_CASE("a supervisor that does not start leaves its last words", "[run][start]") {
  RealRun scene;
  const auto program =
      scene.runs.write("forge", "#!/bin/sh\necho 'error: no such library' >&2\nexit 1\n");
  fs::permissions(program, fs::perms::owner_all);
  const std::string message = error_of([&] { start_supervisor(scene.run, program); });
  REQUIRE(contains(message, "did not start: no such library"));
  REQUIRE(contains(error_of([&] { start_supervisor(scene.run, "/no/such/forge"); }),
                   "cannot start '/no/such/forge'"));
}

TEST_CASE("a supervisor's log empties no file elsewhere", "[run][process][hostile]") {
  const RealRun scene;
  const fs::path theirs = scene.runs.write("theirs", "text");
  fs::create_symlink(theirs, scene.run.supervisor_log());
  REQUIRE(contains(error_of([&] { start_supervisor(scene.run, "/bin/true"); }),
                   "supervisor.log' is a symbolic link"));
  REQUIRE(read_file(theirs) == "text");
}

TEST_CASE("a supervisor that is too slow to begin is no fault of its run", "[run][process]") {
  const RealRun scene;
  const fs::path program = scene.runs.write("slow.sh", "#!/bin/sh\nexec sleep 100\n");
  fs::permissions(program, fs::perms::owner_all);
  bool is_refused = false;
  try {
    start_supervisor(scene.run, program, {}, 0.3);
  } catch (const NoProcess& problem) {
    is_refused = contains(problem.message(), "did not take its lock within");
  }
  CHECK(is_refused);
  CHECK(read_events(scene.run.events_file()).empty());
}

TEST_CASE("a supervisor takes its lock before it reads what is recorded", "[run][process]") {
  const RealRun scene;
  write_file_atomic(scene.run.done_file(), "");  // and no events: the record is damaged
  worker::LocalLauncher launcher;
  SupervisorOptions options;
  bool was_locked = false;
  options.at_end = [&](int) { was_locked = scene.run.is_running(); };
  const std::string error =
      error_of([&] { supervise(scene.run, scene.backend, launcher, options); });
  CHECK(contains(error, "is damaged"));
  CHECK(was_locked);
}

}  // namespace
}  // namespace forge::run
