#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/run/run_folder.h"
#include "core/worker/process_settings.h"

namespace forge::run {

/// What a supervisor is given by its starter.
struct SupervisorStart {
  /// Descriptors that it and its worker hold for as long as they live, one of each device.
  std::vector<int> leases;
  std::vector<std::string> devices;  ///< on which the run is to be; none: that of its request
  int64_t stop_after = 0;            ///< SupervisorOptions::stop_after
  /// The variables that it and its worker have, none: those of its starter.
  std::optional<std::map<std::string, std::string>> environment = {};
  /// Limits, priority and the folder, none: those of its starter.
  std::optional<worker::ProcessSettings> settings = {};
};

/// The machine refused a process: a limit of them is reached, or the program is not there, since it
/// is being installed anew, say; or it is too slow to start one. Of no run's making; it may pass.
struct NoProcess : Error {
  using Error::Error;
};

/// Starts `program supervise RUN_DIR` in a session of its own: it outlives this process and its
/// terminal. Its streams go to supervisor.log. Returns its process id once it holds the run's lock
/// (or has already ended the run). Throws NoProcess where it cannot be started or does not get
/// there in time: it is killed then. Throws Error with its last words when it ended before, of a
/// cause that may pass where it says so.
int start_supervisor(const RunFolder& folder,
                     const std::filesystem::path& program,
                     const SupervisorStart& start = {},
                     double timeout_seconds = 20);

/// Waits for a supervisor that this process started; its exit code, or 128 and the signal that
/// ended it. None where it lives on after that time: it may keep the queue.
std::optional<int> wait_for_supervisor(int pid, double seconds);

}  // namespace forge::run
