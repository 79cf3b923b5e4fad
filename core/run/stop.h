#pragma once

#include <filesystem>
#include <optional>

#include "core/run/run_folder.h"

namespace forge::run {

/// Who may ask a supervisor for a stop: signals (SIGINT, SIGTERM, SIGHUP, SIGUSR2: to save; a
/// SIGINT after any of them: to stop now) and the stop file of the run folder. While it lives it
/// holds the process's handlers for those signals; there is one at a time.
class StopWatch {
 public:
  explicit StopWatch(std::filesystem::path stop_file);
  ~StopWatch();
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  /// What has been asked for until now; never less than before.
  std::optional<Stop> asked();

 private:
  struct Handlers;
  std::filesystem::path stop_file_;
  std::unique_ptr<Handlers> before_;
  std::optional<Stop> asked_;
};

/// Returns after so many seconds, or at once when a signal arrives.
void wait_for_signal(double seconds);

}  // namespace forge::run
