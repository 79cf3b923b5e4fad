#include "core/run/local_launcher.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/protocol/messages.h"
#include "core/run/line_buffer.h"

// Version 1 of Boost.Process has a folder of its own where version 2 is the default.
#if __has_include(<boost/process/v1/extend.hpp>)
#include <boost/process/v1.hpp>
#include <boost/process/v1/extend.hpp>
namespace bp = boost::process::v1;
#else
#include <boost/process.hpp>
#include <boost/process/extend.hpp>
namespace bp = boost::process;
#endif

namespace forge::run {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A file in memory that holds `text` and is read from its start. Unlike a pipe it takes any size
/// at once: a program that does not read its input cannot hold its starter up.
File file_of(const std::string& text) {
  FileDescriptor memory(::memfd_create("forge-request", MFD_CLOEXEC));
  if (!memory) throw system_error("hold the request in memory", errno);
  if (::write(memory.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw system_error("hold the request in memory", errno);
  }
  ::lseek(memory.get(), 0, SEEK_SET);
  return File(::fdopen(memory.release(), "r"), &std::fclose);
}

/// Both ends of a stdin that goes on: a pair of sockets rather than a pipe, because writing to one
/// whose reader is gone can be made an error instead of a signal.
struct OpenInput {
  FileDescriptor ours;
  FileDescriptor theirs;
};

OpenInput open_input() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw system_error("open a worker's stdin", errno);
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// For poll, rounded up so that a short wait is none of zero.
int milliseconds(double seconds) { return static_cast<int>(std::ceil(seconds * 1000)); }

/// A name without a slash is looked for on the PATH.
std::string program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const std::string found = bp::search_path(name).string();
  if (found.empty()) throw system_error("start '" + name + "'", ENOENT);
  return found;
}

File open_for_append(const fs::path& path) {
  File file(std::fopen(path.c_str(), "ae"), &std::fclose);
  if (!file) throw system_error("write '" + path.string() + "'", errno);
  return file;
}

/// The command's own, else the launch's, else the starter's.
fs::path folder_of(const Launch& launch) {
  if (!launch.command.working_folder.empty()) return launch.command.working_folder;
  return launch.working_folder.empty() ? fs::current_path() : launch.working_folder;
}

/// What the child does between fork and exec.
struct ChildSetup : bp::extend::handler {
  explicit ChildSetup(int kept_descriptor) : kept(kept_descriptor) {}
  int kept;  ///< -1: none
  pid_t starter = ::getpid();

  template <class Executor>
  void on_exec_setup(Executor&) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != starter) ::_exit(127);  // the starter died before prctl was in force
    // Marked rather than closed, as bp::limit_handles would: that closes the pipe, too, through
    // which a failing exec is reported. Kernels before 5.11 leave inherited descriptors open.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    if (kept >= 0) ::fcntl(kept, F_SETFD, 0);
    // A shell starts background programs with SIGINT ignored, nohup with SIGHUP: not the worker.
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE})
      ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }
};

class LocalWorker : public RunningWorker {
 public:
  explicit LocalWorker(const Launch& launch);
  ~LocalWorker() override;
  int pid() const override { return child_.id(); }
  Output next(double timeout_seconds) override;
  void send(const std::string& line) override;
  void end_input() override { input_.reset(); }
  void ask_to_stop() override;
  void ask_to_save() override;
  void kill() override;

 private:
  /// What the program reads from: all of its input, or one end of a pair whose other end is kept.
  File stdin_of(const Launch& launch);
  /// Whether the pipe has something to read (or its end) before the time is over.
  bool wait_for_output(double seconds) const;
  void read_available();
  std::optional<ExitStatus> reap();

  FileDescriptor input_;  ///< none: its stdin is at its end after the first line
  bp::pipe stdout_;
  bp::group group_;
  bp::child child_;
  LineBuffer lines_{protocol::max_line_bytes};
  bool at_end_ = false;
  double looked_ = 0;  ///< when it was last asked whether it has ended
  std::optional<ExitStatus> exit_;
};

LocalWorker::LocalWorker(const Launch& launch) {
  const std::vector<std::string>& arguments = launch.command.arguments;
  bp::environment environment = bp::native_environment();
  for (const auto& [name, value] : launch.command.environment) environment[name] = value;
  const fs::path folder = folder_of(launch);
  const File input = stdin_of(launch);
  const File errors = open_for_append(launch.stderr_file);
  std::error_code failure;
  child_ = bp::child(bp::exe = program_of(arguments.at(0)),
                     bp::args = std::vector<std::string>(arguments.begin() + 1, arguments.end()),
                     bp::start_dir = folder.string(),
                     environment,
                     (bp::std_in < input.get()),
                     (bp::std_out > stdout_),
                     (bp::std_err > errors.get()),
                     group_,
                     ChildSetup(launch.inherited),
                     failure);
  if (failure) throw system_error("start '" + arguments[0] + "'", failure.value());
  const int source = stdout_.native_source();
  ::fcntl(source, F_SETFL, O_NONBLOCK);
  ::fcntl(source, F_SETFD, FD_CLOEXEC);
}

File LocalWorker::stdin_of(const Launch& launch) {
  if (!launch.more_input) return file_of(launch.input + "\n");
  OpenInput ends = open_input();
  input_ = std::move(ends.ours);
  send(launch.input);
  return File(::fdopen(ends.theirs.release(), "r"), &std::fclose);
}

void LocalWorker::send(const std::string& line) {
  const std::string text = line + "\n";
  size_t sent = 0;
  while (input_ && sent < text.size()) {
    // Never waits: a program that does not read its input cannot hold its starter up.
    const ssize_t count =
        ::send(input_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return;
    } else if (errno != EINTR) {
      throw system_error("write to a worker's stdin", errno);
    }
  }
}

LocalWorker::~LocalWorker() {
  if (exit_) return;
  kill();
  std::error_code ignored;
  child_.wait(ignored);
}

bool LocalWorker::wait_for_output(double seconds) const {
  pollfd stream{stdout_.native_source(), POLLIN, 0};
  return ::poll(&stream, 1, milliseconds(seconds)) > 0;
}

void LocalWorker::read_available() {
  char bytes[65536];
  const ssize_t got = ::read(stdout_.native_source(), bytes, sizeof bytes);
  if (got > 0) lines_.feed({bytes, static_cast<size_t>(got)});
  if (got == 0) at_end_ = true;
}

std::optional<ExitStatus> LocalWorker::reap() {
  if (exit_) return exit_;
  siginfo_t ended{};
  const int found = ::waitid(P_PID, child_.id(), &ended, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && ended.si_pid == 0) return std::nullopt;
  kill();  // what it left behind, while its number cannot belong to another group yet
  std::error_code ignored;
  child_.running(ignored);  // and not wait_for, which replaces the process's SIGCHLD handler
  const int status = child_.native_exit_code();
  exit_ =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  return exit_;
}

Output LocalWorker::next(double timeout_seconds) {
  // An exit shows as the end of stdout. Two cases do not: a child that keeps the pipe open, silent
  // or talking, is found by looking now and then, and between the end of stdout and the exit there
  // are moments.
  constexpr double look_again_seconds = 0.1;
  constexpr double exit_soon_seconds = 0.003;
  const double deadline = steady_seconds() + timeout_seconds;
  while (true) {
    if (steady_seconds() - looked_ >= look_again_seconds) {
      looked_ = steady_seconds();
      reap();
    }
    if (auto line = lines_.take()) return OutputLine{std::move(*line)};
    const double left = std::max(0.0, deadline - steady_seconds());
    if (!at_end_ && wait_for_output(std::min(left, look_again_seconds))) {
      read_available();
      continue;
    }
    if (reap()) {
      // Everything it wrote is in the pipe by now: an empty pipe means that all was yielded.
      if (at_end_ || !wait_for_output(0)) return *exit_;
      continue;
    }
    if (left == 0) return Quiet{};
    if (at_end_) ::poll(nullptr, 0, milliseconds(std::min(left, exit_soon_seconds)));
  }
}

void LocalWorker::ask_to_stop() {
  if (!reap()) ::kill(child_.id(), SIGTERM);
}

void LocalWorker::ask_to_save() {
  if (!reap()) ::kill(child_.id(), SIGUSR1);
}

void LocalWorker::kill() {
  if (!exit_) ::kill(-group_.native_handle(), SIGKILL);
}

}  // namespace

std::unique_ptr<RunningWorker> LocalLauncher::start(const Launch& launch) {
  return std::make_unique<LocalWorker>(launch);
}

}  // namespace forge::run
