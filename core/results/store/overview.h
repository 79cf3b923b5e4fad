#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/results/store/run_summary.h"
#include "core/run/queue/queue.h"

namespace forge::store {

/// How fast a past run trained, in the operations that core/model/cost.h counts.
struct PastSpeed {
  std::string backend, precision, device_type, device_name;
  int64_t threads = 0;  ///< on a CPU; 0 on other devices
  int64_t processes = 1;
  double operations_per_step = 0;
  double operations_per_second = 0;
};

/// The resolved config of a run; null where there is none.
using ConfigOf = std::function<nlohmann::json(const std::string& run_id)>;

/// What thousands of planned or queued runs are estimated from. Points into `runs`, which are
/// sorted, newest first.
class PastRuns {
 public:
  PastRuns(const std::vector<RunSummary>& runs, const ConfigOf& config_of);

  /// The run of that id, or null.
  const RunSummary* find(const std::string& id) const;
  /// Of the newest completed runs, newest first.
  const std::vector<PastSpeed>& speeds() const { return speeds_; }

 private:
  std::map<std::string, const RunSummary*> by_id_;
  std::vector<PastSpeed> speeds_;
};

/// What is left of a run, and what it will be computed on.
struct RemainingWork {
  nlohmann::json experiment;  ///< the resolved config
  int64_t steps = 0;
  std::string device_type;
  std::string device_name;  ///< "": any of that type
  int64_t threads = 0;      ///< on a CPU; 0 on other devices
};

/// What a run will need.
struct Forecast {
  int64_t steps = 0;                    ///< left
  std::optional<double> seconds;        ///< for them; none without a past run on such a device
  std::optional<int64_t> memory_bytes;  ///< none for an external backend, whose needs are its own
};

/// The time is the operations of the steps and evaluations that are left, divided by the speed that
/// past runs by as many processes reached on such a device with that precision. Larger steps reach
/// more operations a second: between the next smaller and the next larger past step the speed is
/// interpolated, beyond them it is that of the nearest. Memory is counted (core/model/cost.h), not
/// measured.
Forecast forecast(const PastRuns& past, const RemainingWork& work);

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
  std::string stopped = {};  ///< run::StoppedProcesses::text()
};

struct WaitingRun {
  queue::QueueEntry entry;
  /// Since the last sign of life of its host, if that is another one, as far as that can be seen.
  std::optional<double> host_silent_seconds;
  /// Whose run it is, where only that user's forge can start it (core/run/queue/owners.h); "".
  std::string owner;
  /// What of its files this user may not read or write; "".
  std::string closed;
  /// What it waits for where nothing here may give it the limits of its command; "".
  std::string limits;
  /// What the disk has no room for, of the first run that this host is to start; "".
  std::string no_room;
  std::string config;
  int64_t steps_left = 0;
  std::optional<double> seconds;  ///< for them, as forecast
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
