#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"

namespace forge::run {

/// Collects the requests to stop a run: signals and the stop file of the run folder. SIGINT,
/// SIGTERM, SIGHUP and SIGUSR2 ask for a stop after a checkpoint, a SIGINT after any of them for an
/// immediate one. The object holds the process's handlers for those signals; there may be only one
/// at a time.
class StopRequests {
 public:
  explicit StopRequests(std::filesystem::path stop_file);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  /// The strongest request until now.
  std::optional<StopRequest> requested();

 private:
  struct Handlers;
  std::filesystem::path stop_file_;
  std::unique_ptr<Handlers> before_;
  std::optional<StopRequest> requested_;
};

/// Returns after so many seconds, or at once when a signal arrives.
void sleep_until_signal(double seconds);

struct SupervisorOptions {
  double silence_seconds = 120;    ///< a worker that shows no work for so long is taken for hung;
                                   ///< train.hung_after_seconds where the request has it
  double exit_grace_seconds = 30;  ///< after its last word, before it is killed
  double poll_seconds = 0.2;       ///< how often stops and silence are looked for
  double progress_seconds = 0.5;   ///< between two writings of progress.json
  /// Seconds to wait before each fresh worker after one that failed for a cause that may be gone
  /// then: as many fresh workers as there are waits. One that saves a checkpoint has got further,
  /// and those after it begin with the first wait again.
  std::vector<double> retry_waits = {2, 10, 60};
  std::string device;  ///< on which the run is to be, "": that of its request
  int lease = -1;      ///< descriptor that the worker inherits; -1: none
  std::function<double()> clock = steady_seconds;
  std::function<void(double)> sleep = sleep_until_signal;  ///< may return early
  /// Called every periodic_task_seconds while the run goes on.
  std::function<void()> periodic_task;
  double periodic_task_seconds = 5;
  /// Called once when the run has ended and is still locked, with the exit code.
  std::function<void(int)> at_end;
};

/// Exit codes of `forge supervise`.
constexpr int supervised_completed = 0;
constexpr int supervised_failed = 1;
constexpr int supervised_stopped = 3;
constexpr int supervised_storage = 4;  ///< failed, because the disk is full or fails

/// The waits of a list such as "2,10,60"; "" is none. Throws Error for anything else.
std::vector<double> retry_waits_from_text(const std::string& text);

/// Runs the worker of a run folder until the run is completed, stopped or failed, and returns the
/// exit code that says which. Takes the folder's lock for as long; removes an old stop file first.
/// Throws Error when another supervisor holds the lock, the request cannot be read, or events can
/// no longer be recorded (disk full): the worker is stopped then, and all that was acknowledged is
/// in the folder.
int supervise(const RunFolder& folder,
              const worker::Backend& backend,
              worker::Launcher& launcher,
              const SupervisorOptions& options = {});

}  // namespace forge::run
