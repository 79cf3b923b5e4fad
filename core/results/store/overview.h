#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/results/store/run_summary.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

namespace forge::store {

/// What is left of a planned run, as far as past runs tell.
struct Forecast {
  int64_t steps = 0;              ///< left
  std::optional<double> seconds;  ///< for them; nothing where there is no run like it
  std::optional<int64_t> memory_bytes;
};

/// Runs whose steps take as long as each other's, as far as that can be known.
struct SimilarRun {
  std::string project;
  std::string config;
  int64_t tokens_per_step = 0;
  std::optional<std::string> device_name;  ///< none: any
};

/// The newest completed run like that, whose duration is known; `past` is sorted, newest first.
const RunSummary* newest_similar(const std::vector<RunSummary>& past, const SimilarRun& similar);

/// Seconds for so many steps like those of `run`.
double estimated_seconds(int64_t steps, const RunSummary& run);

/// From the newest completed run of the same config and project on the same device whose steps have
/// as many tokens; a run that is cached needs nothing.
Forecast forecast(const std::vector<RunSummary>& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs);

/// A device of this machine and what of it is leased.
struct DeviceUse {
  queue::LeaseDevice device;
  int taken = 0;
};

struct RunningRun {
  RunSummary run;
  std::string device;  ///< that it leased; "" where it was started without a queue
  int64_t step = 0;    ///< the last that is known of
  std::optional<double> seconds_left;
};

struct WaitingRun {
  queue::QueueEntry entry;
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
