#include "core/worker/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/worker/messages.h"
#include "core/worker/spawn.h"

namespace forge::worker {

std::string ExitStatus::describe() const {
  if (signal == 0) return "exit status " + std::to_string(code);
  return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

void LineBuffer::feed(std::string_view bytes) {
  while (true) {
    const size_t end = bytes.find('\n');
    extend(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    if (!skips_) lines_.push_back(std::exchange(unfinished_, {}));
    skips_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void LineBuffer::extend(std::string_view bytes) {
  if (skips_) return;
  const size_t room = limit_ + 1 - unfinished_.size();
  unfinished_.append(bytes.substr(0, std::min(room, bytes.size())));
  if (unfinished_.size() <= limit_) return;
  lines_.push_back(std::exchange(unfinished_, {}));
  skips_ = true;
}

std::optional<std::string> LineBuffer::take() {
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

namespace {

/// A file in memory that holds `text` and is read from its start. Unlike a pipe it takes any size
/// at once: a program that does not read its input cannot hold its starter up.
FileDescriptor file_in_memory(const std::string& text) {
  FileDescriptor memory(::memfd_create("forge-request", MFD_CLOEXEC));
  if (!memory) throw system_error("hold the request in memory", errno);
  write_all(memory.get(), text, "the request, held in memory");
  ::lseek(memory.get(), 0, SEEK_SET);
  return memory;
}

/// For poll, rounded up so that a short wait is none of zero.
int milliseconds(double seconds) { return static_cast<int>(std::ceil(seconds * 1000)); }

class LocalWorker : public RunningWorker {
 public:
  explicit LocalWorker(const Launch& launch);
  ~LocalWorker() override;
  int pid() const override { return pid_; }
  Output next(double timeout_seconds) override;
  void send(const std::string& line) override;
  void end_input() override { input_.reset(); }
  void request_stop() override;
  void request_checkpoint() override;
  void kill() override;

 private:
  /// What the program reads from: all of its input, or one end of a pair whose other end is kept.
  FileDescriptor open_input(const Launch& launch);
  /// Whether the pipe has something to read (or its end) before the time is over.
  bool wait_for_output(double seconds) const;
  /// Whether it reads its input before the patience is over.
  bool wait_for_reader() const;
  void read_available();
  std::optional<ExitStatus> reap();

  FileDescriptor input_;  ///< none: its stdin is at its end after the first line
  const double input_patience_;
  FileDescriptor stdout_;
  pid_t pid_ = 0;  ///< of the program, and of its process group
  LineBuffer lines_{worker::max_line_bytes};
  bool at_end_ = false;
  int64_t left_ = 0;   ///< bytes in the pipe when the program was found to have ended
  double looked_ = 0;  ///< when it was last asked whether it has ended
  std::optional<ExitStatus> exit_;
};

LocalWorker::LocalWorker(const Launch& launch) : input_patience_(launch.input_patience_seconds) {
  const FileDescriptor input = open_input(launch);
  const FileDescriptor errors = open_own_file(launch.stderr_file, O_WRONLY | O_CREAT | O_APPEND);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("open a worker's stdout", errno);
  stdout_ = FileDescriptor(ends[0]);
  const FileDescriptor output(ends[1]);
  ::fcntl(stdout_.get(), F_SETFL, O_NONBLOCK);
  SpawnOptions options;
  options.arguments = launch.command.arguments;
  options.environment = launch.command.environment;
  options.working_folder =
      launch.command.working_folder.empty() ? launch.working_folder : launch.command.working_folder;
  options.streams = {input.get(), output.get(), errors.get()};
  if (launch.inherited >= 0) options.inherited = {launch.inherited};
  options.lifetime = Lifetime::of_starter;
  pid_ = spawn(options);
}

FileDescriptor LocalWorker::open_input(const Launch& launch) {
  if (!launch.keep_stdin_open) return file_in_memory(launch.input + "\n");
  // A pair of sockets and not a pipe: writing to one whose reader is gone is an error, no signal.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw system_error("open a worker's stdin", errno);
  }
  input_ = FileDescriptor(ends[0]);
  FileDescriptor theirs(ends[1]);
  send(launch.input);
  return theirs;
}

void LocalWorker::send(const std::string& line) {
  const std::string text = line + "\n";
  size_t sent = 0;
  while (input_ && sent < text.size()) {
    // A program that does not read its input cannot hold its starter up.
    const ssize_t count =
        ::send(input_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return;
    } else if (errno == EAGAIN && wait_for_reader()) {
      continue;
    } else if (errno != EINTR) {
      throw system_error("write to a worker's stdin", errno);
    }
  }
}

bool LocalWorker::wait_for_reader() const {
  pollfd stream{input_.get(), POLLOUT, 0};
  return ::poll(&stream, 1, milliseconds(input_patience_)) > 0;
}

LocalWorker::~LocalWorker() {
  if (exit_) return;
  kill();
  ::waitpid(pid_, nullptr, 0);
}

bool LocalWorker::wait_for_output(double seconds) const {
  pollfd stream{stdout_.get(), POLLIN, 0};
  return ::poll(&stream, 1, milliseconds(seconds)) > 0;
}

void LocalWorker::read_available() {
  char bytes[65536];
  const ssize_t got = ::read(stdout_.get(), bytes, sizeof bytes);
  if (got > 0) lines_.feed({bytes, static_cast<size_t>(got)});
  if (got > 0 && exit_) left_ -= got;
  if (got == 0) at_end_ = true;
}

std::optional<ExitStatus> LocalWorker::reap() {
  if (exit_) return exit_;
  siginfo_t ended{};
  const int found = ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
  if (found == 0 && ended.si_pid == 0) return std::nullopt;
  kill();  // what it left behind, while its number cannot belong to another group yet
  int status = 0;
  ::waitpid(pid_, &status, 0);
  exit_ =
      WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
  // All that it wrote. What comes behind is of a child that has left the group and lives on: it may
  // talk for ever.
  int bytes = 0;
  left_ = ::ioctl(stdout_.get(), FIONREAD, &bytes) == 0 ? bytes : 0;
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
    if (exit_ && left_ <= 0) return *exit_;
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

void LocalWorker::request_stop() {
  if (!reap()) signal_process(pid_, SIGTERM);
}

void LocalWorker::request_checkpoint() {
  if (!reap()) signal_process(pid_, SIGUSR1);
}

void LocalWorker::kill() {
  if (!exit_) signal_group(pid_, SIGKILL);
}

}  // namespace

std::unique_ptr<RunningWorker> LocalLauncher::start(const Launch& launch) {
  return std::make_unique<LocalWorker>(launch);
}

}  // namespace forge::worker
