#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/worker/messages.h"

namespace forge::worker {

/// What to start: a program with its arguments, and what to set in its environment.
struct WorkerCommand {
  std::vector<std::string> arguments;  ///< the first is the program: a path, or a name on the PATH
  std::map<std::string, std::string> environment;  ///< added to the starter's own
  std::filesystem::path working_folder = {};       ///< "": whatever the launch says
};

struct Launch {
  WorkerCommand command;
  std::string input;                     ///< the line on stdin, which ends after it
  std::filesystem::path working_folder;  ///< where the command names none; "": the starter's own
  std::filesystem::path stderr_file;     ///< appended to
  bool keep_stdin_open = false;          ///< stdin goes on after the line: RunningWorker::send
  int inherited = -1;                    ///< a descriptor that the program keeps open; -1: none
  double input_patience_seconds = 0;     ///< how long a send waits for a program to read
};

/// How a process ended: by itself with a code, or killed by a signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;  ///< 0: it was no signal, and `code` counts
  int rank = 0;    ///< which of several processes it was

  /// "exit status 3" or "signal 9 (Killed)".
  std::string describe() const;
};

/// A whole line of the program's stdout, without its newline. Of an overlong one only the first
/// worker::max_line_bytes + 1 bytes.
struct OutputLine {
  std::string text;
};
/// Nothing happened within the time given.
struct Quiet {};

using Output = std::variant<Quiet, OutputLine, ExitStatus>;

/// One of several processes that do a job together.
struct Member {
  int pid = 0;
  bool said_hello = false;
  std::optional<ExitStatus> exit = {};  ///< none: it runs
};

/// A started program. Destroying it kills what still runs. To be used by one thread.
class RunningWorker {
 public:
  virtual ~RunningWorker() = default;
  virtual int pid() const = 0;
  /// By rank, where it is several processes that speak with one voice (core/run/group.h); `pid` is
  /// that of the first. Empty: it is one.
  virtual std::vector<Member> members() const { return {}; }
  /// Waits at most `timeout_seconds`. Yields lines in their order, then exactly one ExitStatus,
  /// after which it must not be called again. A last line without a newline is not yielded: its
  /// writer died in mid-line.
  virtual Output next(double timeout_seconds) = 0;
  /// One more line on stdin, if the launch kept it open. Does nothing once the program has ended:
  /// `next` says how.
  virtual void send(const std::string& line) = 0;
  /// Closes that stdin.
  virtual void end_input() = 0;
  /// SIGTERM to the program: save and finish.
  virtual void request_stop() = 0;
  /// SIGUSR1 to the program: save and go on. It ends one that does not listen.
  virtual void request_checkpoint() = 0;
  /// SIGKILL to the program and all that it started.
  virtual void kill() = 0;
};

/// Starts programs; never interprets a line.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Throws Error (exit code `failed`) when the program cannot be started.
  virtual std::unique_ptr<RunningWorker> start(const Launch& launch) = 0;
};

/// Cuts a stream of bytes into lines. Holds at most `limit` + 1 bytes of an unfinished line: what
/// goes beyond is dropped, so that endless output without a newline cannot fill the memory.
class LineBuffer {
 public:
  explicit LineBuffer(size_t limit) : limit_(limit) {}
  void feed(std::string_view bytes);
  /// The oldest whole line without its newline, or nothing. One of more than `limit` bytes comes
  /// as soon as it is that long, cut behind its first byte too many: its end may never come.
  std::optional<std::string> take();

 private:
  void extend(std::string_view bytes);

  size_t limit_;
  std::string unfinished_;
  bool skips_ = false;  ///< the rest of a line that was cut
  std::deque<std::string> lines_;
};

/// Starts programs on this machine. Each leads a process group of its own, so that Ctrl-C in a
/// terminal does not reach it, inherits no descriptor but its three streams, and is killed by the
/// kernel when the thread that started it ends, however that comes about.
class LocalLauncher : public Launcher {
 public:
  std::unique_ptr<RunningWorker> start(const Launch& launch) override;
};

/// What a backend says of itself and of this machine.
struct BackendInfo {
  worker::Hello hello;
  worker::Environment environment;
  std::optional<worker::Supports> supports = {};  ///< none: it did not say
};

/// A program that trains, seen from forge's side. Const; starts nothing but in `describe`.
class Backend {
 public:
  virtual ~Backend() = default;
  /// As the config's `backend` names it.
  virtual std::string name() const = 0;
  /// The worker's program and environment for a request. Throws Error when it is not installed.
  virtual WorkerCommand command(const worker::Request& request) const = 0;
  /// Asks a worker what it is and would run on for `device` and `threads` of a request.
  virtual BackendInfo describe(Launcher& launcher,
                               const std::string& device,
                               int threads) const = 0;
};

}  // namespace forge::worker
