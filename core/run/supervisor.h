#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/run/host.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"

namespace forge::run {

/// The requests to stop a run: signals and the stop file. SIGINT, SIGTERM, SIGHUP and SIGUSR2 ask
/// for a stop after a checkpoint, a SIGINT after any of them for an immediate stop. A SIGHUP that
/// the starter ignores (nohup) asks for nothing. The object holds the process's handlers for these
/// signals; only one may exist at a time.
class StopRequests {
 public:
  explicit StopRequests(std::filesystem::path stop_file);
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;

  /// The strongest request until now.
  std::optional<StopRequest> requested();
  /// Whether one of them was for all runs.
  bool are_for_all() const { return with_all_; }

 private:
  struct Handlers;
  std::filesystem::path stop_file_;
  std::unique_ptr<Handlers> before_;
  std::optional<StopRequest> requested_;
  bool with_all_ = false;
};

/// Returns after `seconds`, or at once when a signal arrives.
void sleep_until_signal(double seconds);

/// The lock of a run that this process supervises.
class RunLock {
 public:
  /// Removes old requests to stop or save. Throws Error where another process holds the lock.
  explicit RunLock(const RunFolder& folder);
  /// To be called all along. Puts the lock's file back where somebody has removed it. Throws Error
  /// where the run folder is gone, or another process has taken the lock before.
  void keep();
  /// Whether another process has it.
  bool is_lost() const { return lost_; }

 private:
  const RunFolder& folder_;
  FileLock lock_;
  bool lost_ = false;
};

struct SupervisorOptions {
  /// A worker without progress for so long counts as hung; train.hung_after_seconds overrides it.
  /// After a longer silence that ended it is twice that one; a worker that computes has ten
  /// times as long for its first step. Only time that the supervisor has watched counts.
  double silence_seconds = 120;
  double exit_grace_seconds = 30;  ///< after its final event, before it is killed
  double poll_seconds = 0.2;       ///< between two checks for stops and silence
  double progress_seconds = 0.5;   ///< between two writings of progress.json
  /// Seconds to wait before each retry; there are as many retries as waits. After a worker that
  /// saved a checkpoint they begin with the first wait again. Where the machine starts no worker,
  /// the last one is repeated until it does, or the run is stopped; without waits it fails.
  std::vector<double> retry_waits = {2, 10, 60};
  std::vector<std::string> devices;  ///< for the run, one of each process; none: its request's
  /// The run saves and stops after this step, which is evaluated: a rung of core/run/halving.h. 0:
  /// it goes on to its last step. Not part of the run's identity.
  int64_t stop_after = 0;
  /// Descriptors that the worker inherits: each process that of its device, or all the only one.
  std::vector<int> leases;
  std::function<double()> clock = steady_seconds;
  std::function<void(double)> sleep = sleep_until_signal;  ///< may return early
  std::function<std::optional<double>(int)> cpu_seconds = process_cpu_seconds;  ///< of a process
  /// Called where a worker is not what it was planned as: what is known of it by an earlier answer
  /// is not true any more, and whoever plans the run again has to ask.
  std::function<void()> forget_descriptions;
  /// Called every periodic_task_seconds while the run goes on.
  std::function<void()> periodic_task;
  double periodic_task_seconds = 5;
  /// Called once with the exit code, when the run has ended and is still locked.
  std::function<void(int)> at_end;
};

/// Exit codes of `forge supervise`.
constexpr int supervised_completed = 0;
constexpr int supervised_failed = 1;
constexpr int supervised_stopped = 3;
constexpr int supervised_storage = 4;  ///< failed, because the disk is full or fails
constexpr int supervised_refused = 6;  ///< not begun, for a cause that may pass (may_pass)

/// The waits in a list such as "2,10,60"; "" is none. Throws Error for anything else.
std::vector<double> retry_waits_from_text(const std::string& text);
/// Those of FORGE_RETRY_WAITS, else the usual ones. Throws Error where it is no list.
std::vector<double> chosen_retry_waits();

/// Runs workers until the run is completed, stopped or failed, and returns the exit code for that.
/// Holds the folder's lock meanwhile, and removes old stop files first. Throws Error if another
/// supervisor holds the lock, the request cannot be read, or events can no longer be recorded (disk
/// full): then the worker is stopped, and everything acknowledged is in the folder.
int supervise(const RunFolder& folder,
              const worker::Backend& backend,
              worker::Launcher& launcher,
              const SupervisorOptions& options = {});

}  // namespace forge::run
