#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/worker/job.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"
#include "core/worker/spawn.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::worker {
namespace {

std::vector<std::string> take_all(LineBuffer& buffer) {
  std::vector<std::string> lines;
  while (auto line = buffer.take()) lines.push_back(*line);
  return lines;
}

TEST_CASE("lines come out whole however the bytes come in", "[run][line_buffer]") {
  const std::string text = "one\n\nthree is longer\nfour\ntorn";
  const uint64_t seed = 7;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (int round = 0; round < 50; ++round) {
    LineBuffer buffer(100);
    for (size_t at = 0; at < text.size();) {
      const size_t count = 1 + random.below(6);
      buffer.feed(std::string_view(text).substr(at, count));
      at += count;
    }
    REQUIRE(take_all(buffer) == std::vector<std::string>{"one", "", "three is longer", "four"});
  }
}

TEST_CASE("an endless line is cut one byte beyond the limit", "[run][line_buffer]") {
  LineBuffer buffer(4);
  buffer.feed("abc");
  buffer.feed("defghi");
  buffer.feed("jkl\nok\nabcd\nabcde\n");
  REQUIRE(take_all(buffer) == std::vector<std::string>{"abcde", "ok", "abcd", "abcde"});
}

TEST_CASE("a line that is too long comes before its end does", "[run][line_buffer]") {
  LineBuffer buffer(4);
  buffer.feed("abcdef");
  REQUIRE(take_all(buffer) == std::vector<std::string>{"abcde"});
  buffer.feed("ghi\nok\n");
  REQUIRE(take_all(buffer) == std::vector<std::string>{"ok"});
}

using tests::contains;
using tests::error_of;
using tests::gone;
using tests::TemporaryFolder;
using tests::until;

constexpr double patience = 600;  // seconds; only a hang takes so long

/// /bin/sh with a script, started.
class Shell {
 public:
  explicit Shell(const std::string& script,
                 const std::string& input = "",
                 bool more = false,
                 double input_patience = 0) {
    Launch launch;
    launch.keep_stdin_open = more;
    launch.input_patience_seconds = input_patience;
    launch.command = {{"/bin/sh", "-c", script}, {{"FORGE_TEST_WORD", "word of the environment"}}};
    launch.input = input;
    launch.working_folder = folder.path();
    launch.stderr_file = folder / "stderr.log";
    worker = LocalLauncher().start(launch);
  }
  std::string line() { return std::get<OutputLine>(worker->next(patience)).text; }
  ExitStatus exit() { return std::get<ExitStatus>(worker->next(patience)); }

  TemporaryFolder folder;
  std::unique_ptr<RunningWorker> worker;
};

// The sanitizers' own checks open pipes, and take their failure for a fault of forge.
TEST_CASE("where no more files can be opened a start fails in words",
          "[run][launcher][hostile][no_sanitizers]") {
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
  const tests::TemporaryFolder folder;
  int failed = 0, started = 0;
  for (int free = 0; free < 30; ++free) {
    struct rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(lowest + free);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    std::string problem;
    try {
      // Its destructor sends signals: a wrong number would reach all processes of this user.
      const auto worker =
          LocalLauncher().start({{{"/bin/true"}, {}}, "", folder.path(), folder / "errors"});
      if (worker->pid() > 1) ++started;
    } catch (const Error& error) {
      problem = error.message();
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    if (problem.empty()) continue;
    ++failed;
    CHECK(tests::contains(problem, "Too many open files"));
  }
  CHECK(failed > 0);
  CHECK(started > 0);
  CHECK(failed + started == 30);
}

TEST_CASE("a program gets its line and its environment and its folder", "[run][launcher]") {
  Shell shell("read line; echo \"$line\"; echo $FORGE_TEST_WORD; pwd; cat; echo prose >&2; exit 3",
              "{\"job\":\"train\"}");
  REQUIRE(shell.line() == "{\"job\":\"train\"}");
  REQUIRE(shell.line() == "word of the environment");
  REQUIRE(shell.line() == fs::canonical(shell.folder.path()).string());
  const ExitStatus exit = shell.exit();  // `cat` saw the end of stdin
  REQUIRE(exit.code == 3);
  REQUIRE(exit.signal == 0);
  REQUIRE(read_file(shell.folder / "stderr.log") == "prose\n");
}

/// Sets variables of this process and puts them back.
class SetVariables {
 public:
  explicit SetVariables(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* const before = std::getenv(name.c_str());
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~SetVariables() {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name.c_str(), value->c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }
  SetVariables(const SetVariables&) = delete;
  SetVariables& operator=(const SetVariables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_CASE("a program loads no code from the folder that it starts in", "[run][launcher][hostile]") {
  const std::string path = "/usr/bin:/bin";
  const std::map<std::string, std::string> dangerous = {
      {"PATH", "bin:" + path + ":"},
      {"LD_LIBRARY_PATH", "/opt/lib;lib::/opt/more:$ORIGIN/../lib;"},
      {"LD_PRELOAD", "./evil.so lib/evil.so"},
      {"PYTHONPATH", ":packages:.:/opt/packages:"},
      {"PYTHONHOME", "home"}};
  const std::string words = "|/opt/lib:/opt/more:$ORIGIN/../lib||/opt/packages||";
  const std::string print =
      "echo \"|$LD_LIBRARY_PATH|$LD_PRELOAD|$PYTHONPATH|$PYTHONHOME|\"; echo \"$PATH\"";
  SECTION("with its starter's environment") {
    const SetVariables set(dangerous);
    Shell shell(print, "");
    CHECK(shell.line() == words);
    CHECK(shell.line() == path);
  }
  SECTION("with an environment of its own") {
    const tests::TemporaryFolder folder;
    const FileDescriptor nothing = open_file("/dev/null", O_RDWR);
    const FileDescriptor output = open_file(folder / "output", O_WRONLY | O_CREAT);
    SpawnOptions options;
    options.arguments = {"/bin/sh", "-c", print};
    options.environment = dangerous;
    options.extends_environment = false;
    options.streams = {nothing.get(), output.get(), nothing.get()};
    const pid_t pid = spawn(options);
    REQUIRE(::waitpid(pid, nullptr, 0) == pid);
    CHECK(read_file(folder / "output") == words + "\n" + path + "\n");
  }
  SECTION("what is set for it alone stays") {
    const tests::TemporaryFolder folder;
    const auto worker =
        LocalLauncher().start({{{"/bin/sh", "-c", "echo $PYTHONPATH"}, {{"PYTHONPATH", "src:"}}},
                               "",
                               folder.path(),
                               folder / "errors"});
    CHECK(std::get<OutputLine>(worker->next(patience)).text == "src:");
  }
  SECTION("and is none of it itself") {
    const tests::TemporaryFolder folder;
    const SetVariables set({{"PATH", "/nowhere::" + folder.path().filename().string()}});
    write_file_atomic(folder / "forge_test_program", "#!/bin/sh\n");
    fs::permissions(folder / "forge_test_program", fs::perms::owner_all);
    const fs::path before = fs::current_path();
    for (const fs::path& here : {folder.path(), folder.path().parent_path()}) {
      fs::current_path(here);
      CHECK_THROWS_AS(LocalLauncher().start(
                          {{{"forge_test_program"}, {}}, "", folder.path(), folder / "errors"}),
                      Error);
    }
    fs::current_path(before);
  }
}

TEST_CASE("a program that reads more slowly than it is sent gets all, with patience",
          "[run][launcher]") {
  const std::string line(1000, 'x');
  constexpr int lines = 2000;  // far more than a socket holds
  Shell slow(
      "read first; while read line; do n=$((n + 1)); done; echo $n", "first", true, patience);
  for (int i = 0; i < lines; ++i) slow.worker->send(line);
  slow.worker->end_input();
  REQUIRE(slow.line() == std::to_string(lines));
  Shell deaf("echo started; exec sleep 600", "first", true);
  REQUIRE(deaf.line() == "started");
  REQUIRE(contains(error_of([&] {
                     for (int i = 0; i < lines; ++i) deaf.worker->send(line);
                   }),
                   "write to a worker's stdin"));
}

TEST_CASE("a request larger than a pipe holds up nobody", "[run][launcher]") {
  Shell shell("echo started; wc -c", std::string(1'000'000, 'x'));
  REQUIRE(shell.line() == "started");
  REQUIRE(trim(shell.line()) == "1000001");
}

TEST_CASE("a program whose input goes on gets lines until their end", "[run][launcher]") {
  Shell shell("while read line; do echo \"got $line\"; done; echo over", "first", true);
  REQUIRE(shell.line() == "got first");
  REQUIRE(std::holds_alternative<Quiet>(shell.worker->next(0.01)));  // it waits for more
  shell.worker->send("second");
  REQUIRE(shell.line() == "got second");
  shell.worker->end_input();
  shell.worker->end_input();  // once more does no harm
  shell.worker->send("too late");
  REQUIRE(shell.line() == "over");
  REQUIRE(shell.exit().code == 0);
}

TEST_CASE("a line for a program that has ended ends nobody else", "[run][launcher]") {
  Shell shell("exit 3", "first", true);
  REQUIRE(shell.exit().code == 3);
  shell.worker->send("second");  // neither an error nor SIGPIPE
}

TEST_CASE("stderr is appended to", "[run][launcher]") {
  const TemporaryFolder folder;
  const auto file = folder.write("stderr.log", "before\n");
  LocalLauncher launcher;
  const auto worker = launcher.start({{{"/bin/sh", "-c", "echo after >&2"}, {}}, "", "", file});
  REQUIRE(std::holds_alternative<ExitStatus>(worker->next(patience)));
  REQUIRE(read_file(file) == "before\nafter\n");
}

TEST_CASE("many lines come in order and a last torn one does not come", "[run][launcher]") {
  Shell shell("seq 1 20000; printf torn");
  for (int i = 1; i <= 20000; ++i) {
    if (shell.line() != std::to_string(i)) FAIL("line " << i);
  }
  REQUIRE(shell.exit().code == 0);
}

TEST_CASE("a line beyond the limit is cut", "[run][launcher]") {
  Shell shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo next");
  REQUIRE(shell.line().size() == worker::max_line_bytes + 1);
  REQUIRE(shell.line() == "next");
}

TEST_CASE("waiting ends in time", "[run][launcher]") {
  Shell shell("exec sleep 100");
  REQUIRE(std::holds_alternative<Quiet>(shell.worker->next(0.01)));
}

TEST_CASE("a program that is not there or cannot be run is an error at once", "[run][launcher]") {
  const TemporaryFolder folder;
  LocalLauncher launcher;
  const auto start = [&](const std::string& program) {
    return error_of([&] { launcher.start({{{program}, {}}, "", "", folder / "stderr.log"}); });
  };
  REQUIRE(contains(start("/no/such/program"), "cannot start '/no/such/program': No such file"));
  REQUIRE(contains(start("no-such-program-anywhere"), "No such file"));
  REQUIRE(contains(start(folder.write("text", "words").string()), "Permission denied"));
}

TEST_CASE("SIGTERM reaches the program and lets it finish", "[run][launcher]") {
  Shell shell("trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  REQUIRE(shell.line() == "ready");
  shell.worker->request_stop();
  REQUIRE(shell.line() == "saved");
  REQUIRE(shell.exit().code == 3);
}

TEST_CASE("no signal goes to processes that were not started", "[run][launcher][hostile]") {
  for (const pid_t pid : {pid_t{1}, pid_t{0}, pid_t{-1}, pid_t{-::getpgrp()}}) {
    REQUIRE_FALSE(signal_process(pid, 0));
    REQUIRE_FALSE(signal_group(pid, 0));
  }
  REQUIRE(signal_process(::getpid(), 0));
}

TEST_CASE("kill takes the program with all that it started", "[run][launcher]") {
  Shell shell("trap '' TERM; sleep 100 & echo $!; wait");
  const int grandchild = std::stoi(shell.line());
  shell.worker->kill();
  REQUIRE(shell.exit().signal == SIGKILL);
  REQUIRE(until([&] { return gone(grandchild); }));
}

TEST_CASE("an exit is seen though a child holds stdout open", "[run][launcher]") {
  Shell shell("sleep 100 & echo $!; exit 4");
  const int grandchild = std::stoi(shell.line());
  REQUIRE(shell.exit().code == 4);
  REQUIRE(until([&] { return gone(grandchild); }));
}

TEST_CASE("a child that goes on talking ends with the program that started it", "[run][launcher]") {
  Shell shell("yes & exit 6");
  const double deadline = steady_seconds() + patience;
  Output output = OutputLine{"y"};
  while (std::holds_alternative<OutputLine>(output) && steady_seconds() < deadline)
    output = shell.worker->next(patience);
  REQUIRE(std::holds_alternative<ExitStatus>(output));
  REQUIRE(std::get<ExitStatus>(output).code == 6);
}

TEST_CASE("a child that has left the group and goes on talking holds nobody up",
          "[run][launcher][hostile]") {
  // The talker's number is not read from stdout: the talker may be heard first.
  Shell shell(
      "setsid sh -c ': > left; exec yes' & echo $! > pid; "
      "while [ ! -e left ]; do sleep 0.01; done; exit 6");
  const double deadline = steady_seconds() + patience;
  Output output = OutputLine{"y"};
  while (std::holds_alternative<OutputLine>(output) && steady_seconds() < deadline)
    output = shell.worker->next(patience);
  ::kill(std::stoi(read_file(shell.folder / "pid")), SIGKILL);
  REQUIRE(std::holds_alternative<ExitStatus>(output));
  REQUIRE(std::get<ExitStatus>(output).code == 6);
}

TEST_CASE("a program that closes stdout and lives on is not taken for dead", "[run][launcher]") {
  Shell shell("exec 1>&-; : > closed; while [ ! -e leave ]; do sleep 0.01; done; exit 5");
  REQUIRE(until([&] { return fs::exists(shell.folder / "closed"); }));
  REQUIRE(std::holds_alternative<Quiet>(shell.worker->next(0.01)));
  shell.folder.write("leave", "");
  REQUIRE(shell.exit().code == 5);
}

TEST_CASE("letting go of a program kills it", "[run][launcher]") {
  Shell shell("echo $$; exec sleep 100");
  const int pid = std::stoi(shell.line());
  shell.worker.reset();
  REQUIRE(gone(pid));
}

TEST_CASE("a program inherits no descriptors and no signal that is ignored", "[run][launcher]") {
  const TemporaryFolder folder;
  const FileDescriptor open(::open(folder.path().c_str(), O_RDONLY));  // without O_CLOEXEC
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    ::signal(signal, SIG_IGN);
    Shell shell("[ -e /proc/$$/fd/" + std::to_string(open.get()) +
                " ] && echo inherited || echo closed; kill -" + std::to_string(signal) +
                " $$; sleep 100");
    ::signal(signal, SIG_DFL);
    REQUIRE(shell.line() == "closed");
    REQUIRE(shell.exit().signal == signal);
  }
}

TEST_CASE("a program leads a group of its own and dies with its starter", "[run][launcher]") {
  const TemporaryFolder folder;
  const fs::path pid_file = folder / "pid";
  const pid_t starter = ::fork();
  if (starter == 0) {
    LocalLauncher launcher;
    const auto worker = launcher.start(
        {{{"/bin/sh", "-c", "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 100"}, {}},
         "",
         folder.path(),
         folder / "stderr.log"});
    ::pause();
    ::_exit(0);
  }
  REQUIRE(until([&] { return fs::exists(pid_file); }));
  const int pid = std::stoi(read_file(pid_file));
  REQUIRE(::getpgid(pid) == pid);
  ::kill(starter, SIGKILL);
  ::waitpid(starter, nullptr, 0);
  REQUIRE(until([&] { return gone(pid); }));
}

TEST_CASE("an exit status is shown in words", "[run][launcher]") {
  REQUIRE(ExitStatus{3, 0}.describe() == "exit status 3");
  REQUIRE(ExitStatus{0, SIGKILL}.describe() == "signal 9 (Killed)");
}

using namespace tests;

/// What the events of a scripted job were, or the Error it ended with.
std::string outcome(const Script& script) {
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  std::string names;
  const std::string error = error_of([&] {
    run_job(launcher, {{"worker"}, {}}, {}, 120, [&](const worker::Event& event) {
      names += std::string(" ") + worker::name_of(event);
    });
  });
  return names + error;
}

TEST_CASE("a job passes its worker's events on", "[run][job]") {
  REQUIRE(outcome({Says{lines::hello}, Says{lines::environment}, Exits{}}) == " hello environment");
}

TEST_CASE("a job that goes wrong says how", "[run][job]") {
  REQUIRE(contains(outcome({Exits{{0, 0}}}), "ended with exit status 0"));
  REQUIRE(contains(outcome({Says{lines::hello}, Exits{{0, SIGSEGV}}}),
                   "signal 11 (Segmentation fault)"));
  REQUIRE(contains(outcome({Says{"hi"}}), "'hi'"));
  REQUIRE(contains(outcome({Says{lines::environment}}), "does not speak version 1"));
  REQUIRE(contains(
      outcome({Says{lines::hello}, Says{R"({"event":"failed","message":"no GPU","hint":"h"})"}}),
      "no GPU\nhint: h"));
  REQUIRE(contains(outcome({Says{lines::hello}}), "said nothing for 2m 00s"));
}

TEST_CASE("the answer of a worker that stays is taken", "[run][job][hostile]") {
  const std::string result = R"({"event":"result","values":{"loss":2.5}})";
  FakeClock clock;
  FakeLauncher launcher(clock, {{{Says{lines::hello}, Says{result}}, {}}});  // silent for ever
  REQUIRE(job_result(launcher, {{"worker"}, {}}, {}).at("loss") == 2.5);
  REQUIRE(clock.seconds <= 1000 + exit_grace_seconds);
}

TEST_CASE("a job's last words on stderr are shown", "[run][job]") {
  LocalLauncher launcher;
  const std::string message = error_of([&] {
    run_job(launcher,
            {{"/bin/sh", "-c", "echo library missing >&2; exit 127"}, {}},
            {},
            patience,
            [](const worker::Event&) {});
  });
  REQUIRE(contains(message, "exit status 127"));
  REQUIRE(contains(message, "library missing"));
}

}  // namespace
}  // namespace forge::worker
