#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/queue/entry.h"
#include "core/store/run_summary.h"

namespace forge::store {

/// A device of this machine and what of it is leased.
struct DeviceUse {
  queue::Device device;
  int taken = 0;
};

struct RunningRun {
  RunSummary run;
  std::string device;  ///< that it leased; "" where it was started without a queue
  int64_t step = 0;    ///< the last that is known of
  std::optional<double> seconds_left;
};

struct WaitingRun {
  queue::Entry entry;
  std::string config;
  int64_t steps_left = 0;
  std::optional<double> seconds;  ///< for them, as long as they took the newest run like it
};

/// What goes on in a runs folder now.
struct Overview {
  std::vector<DeviceUse> devices;     ///< that a run has ever leased, by name
  std::vector<RunningRun> running;    ///< oldest first
  std::vector<WaitingRun> waiting;    ///< in the order in which they are to begin
  std::vector<RunSummary> ended;      ///< the last ones, newest first
  std::vector<std::string> warnings;  ///< what cannot be read
};

class ResultStore;

/// Brings the store up to date and looks at runs and queue. At most `most_ended` of those that have
/// ended.
Overview overview(ResultStore& store, const std::filesystem::path& runs_dir, size_t most_ended);

}  // namespace forge::store
