#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/results/store/run_summary.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

namespace forge::store {

/// What is left of a planned run, estimated from past runs.
struct Forecast {
  int64_t steps = 0;              ///< left
  std::optional<double> seconds;  ///< for them; none without a similar run
  std::optional<int64_t> memory_bytes;
};

/// What decides how long a run's steps take, as far as that is known.
struct RunLikeness {
  std::string project;
  std::string config;
  int64_t tokens_per_step = 0;
  std::optional<std::string> device_name;  ///< none: any

  bool operator<(const RunLikeness& other) const {
    return std::tie(project, config, tokens_per_step, device_name) <
           std::tie(other.project, other.config, other.tokens_per_step, other.device_name);
  }
};

/// Finds past runs without looking through all of them: thousands of planned or queued runs are
/// estimated from thousands of past ones. Points into `runs`, which are sorted, newest first.
class PastRuns {
 public:
  explicit PastRuns(const std::vector<RunSummary>& runs);

  /// The run of that id, or null.
  const RunSummary* find(const std::string& id) const;
  /// The newest completed run with a known duration, or null.
  const RunSummary* newest_similar(const RunLikeness& likeness) const;

 private:
  std::map<std::string, const RunSummary*> by_id_;
  std::map<RunLikeness, const RunSummary*> newest_;
};

/// Estimates from the newest completed run of the same config and project, on the same device, with
/// as many tokens a step. A run that is cached needs nothing.
Forecast forecast(const PastRuns& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs);

/// A device of this machine and how much of it is leased.
struct DeviceUse {
  queue::LeaseDevice device;
  int used_units = 0;
};

struct RunningRun {
  RunSummary run;
  std::string device;  ///< its lease; "" if it was started without the queue
  int64_t step = 0;    ///< the last one known
  std::optional<double> seconds_left;
};

struct WaitingRun {
  queue::QueueEntry entry;
  /// Since the last sign of life of its host, if that is another one.
  std::optional<double> host_silent_seconds;
  std::string config;
  int64_t steps_left = 0;
  std::optional<double> seconds;  ///< for them, by the newest similar run
};

/// The state of a runs folder.
struct Overview {
  std::vector<DeviceUse> devices;     ///< all that were ever leased, by name
  std::vector<RunningRun> running;    ///< oldest first
  std::vector<WaitingRun> waiting;    ///< in the order of their start
  std::vector<RunSummary> ended;      ///< the last ones, newest first
  std::vector<std::string> warnings;  ///< what cannot be read
};

/// The step that a run is at. The events of an active one tell it only once in a logging window.
int64_t current_step(const std::filesystem::path& runs_dir, const RunSummary& run);

class ResultStore;

/// Brings the store up to date and reads runs and queue, with at most `max_ended` ended runs.
Overview overview(ResultStore& store, const std::filesystem::path& runs_dir, size_t max_ended);

}  // namespace forge::store
