#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/run/backend.h"
#include "core/run/launcher.h"
#include "core/run/run_folder.h"
#include "core/run/stop.h"

namespace forge::run {

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
  std::function<void(double)> sleep = wait_for_signal;  ///< may return early
  /// Called now and then while the run goes on.
  std::function<void()> meanwhile;
  double meanwhile_seconds = 5;
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
              const Backend& backend,
              Launcher& launcher,
              const SupervisorOptions& options = {});

}  // namespace forge::run
