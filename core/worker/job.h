#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/staging.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::worker {

/// How long such a worker may say nothing: a batch, a warm-up or a window of a large model on a
/// slow machine takes minutes.
constexpr double job_silence_seconds = 600;

/// A worker that stays for so long after its answer has nothing more to say.
constexpr double exit_grace_seconds = 30;

/// A worker that does a job which is over soon and needs no run folder. Destroying it kills what
/// still runs.
class JobSession {
 public:
  /// Starts the worker. `keep_stdin_open`: lines follow the request (`send`).
  JobSession(Launcher& launcher,
             const WorkerCommand& command,
             const worker::Request& request,
             double silence_seconds,
             bool keep_stdin_open = false);
  ~JobSession();
  JobSession(JobSession&&) noexcept;
  JobSession& operator=(JobSession&&) = delete;

  /// Its next event; none where it has ended as it should. Throws Error as run_job does.
  std::optional<worker::Event> next();
  void send(const std::string& line) { worker_->send(line); }
  void end_input() { worker_->end_input(); }
  /// It has answered: from now on it has exit_grace_seconds to leave, and counts as ended then.
  void expect_end() { leaves_by_ = steady_seconds() + exit_grace_seconds; }

 private:
  std::string command_;  ///< as it would be typed
  double silence_seconds_;
  std::optional<double> leaves_by_;        ///< by steady_seconds
  std::unique_ptr<TemporaryFile> errors_;  ///< the worker's stderr
  std::unique_ptr<RunningWorker> worker_;
  bool hello_received_ = false;
  bool has_said_so_ = false;  ///< that it waits
};

/// Runs a worker for a job that is over soon and needs no run folder (describe, evaluate, generate,
/// bench) and passes each event on as it comes. Throws Error with what is wrong and the worker's
/// last stderr lines when it breaks the protocol, says `failed`, leaves with another exit status
/// than 0 or is silent for `silence_seconds`.
void run_job(Launcher& launcher,
             const WorkerCommand& command,
             const worker::Request& request,
             double silence_seconds,
             const std::function<void(const worker::Event&)>& on_event);

/// Runs such a job and returns the values of its last result. A worker that stays after it is
/// killed. Throws Error as run_job does, and where there is no result.
nlohmann::json job_result(Launcher& launcher,
                          const WorkerCommand& command,
                          const worker::Request& request,
                          const std::function<void(const worker::Event&)>& on_event = {});

}  // namespace forge::worker
