#include "core/run/local_launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/protocol/messages.h"
#include "tests/core/run/fixture.h"
#include "tests/core/run/processes.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::gone;
using tests::TemporaryFolder;
using tests::until;

constexpr double patience = 20;  // seconds; only a failure takes so long

/// /bin/sh with a script, started.
class Shell {
 public:
  explicit Shell(const std::string& script, const std::string& input = "", bool more = false) {
    Launch launch;
    launch.more_input = more;
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
  REQUIRE(shell.line().size() == protocol::max_line_bytes + 1);
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
  shell.worker->ask_to_stop();
  REQUIRE(shell.line() == "saved");
  REQUIRE(shell.exit().code == 3);
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

TEST_CASE("a program that closes stdout and lives on is not taken for dead", "[run][launcher]") {
  Shell shell("exec 1>&-; sleep 0.05; exit 5");
  REQUIRE(std::holds_alternative<Quiet>(shell.worker->next(0.01)));
  REQUIRE(shell.exit().code == 5);
}

TEST_CASE("letting go of a program kills it", "[run][launcher]") {
  Shell shell("echo $$; exec sleep 100");
  const int pid = std::stoi(shell.line());
  shell.worker.reset();
  REQUIRE(gone(pid));
}

TEST_CASE("a program inherits no descriptors and no signal that is ignored", "[run][launcher]") {
  const FileDescriptor open(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
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

}  // namespace
}  // namespace forge::run
