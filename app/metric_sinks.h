#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/results/tables/run_metrics.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"

namespace forge::app {

/// Where the metrics of one run go while it trains.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// The metrics of one event.
  virtual void take(const std::vector<tables::MetricPoint>& metrics) = 0;
  /// The run was resumed: it repeats what comes after this step.
  virtual void repeat_after(int64_t step, double time) = 0;
  /// Hands on what was taken.
  virtual void flush() = 0;
  /// The run has ended, or is followed no longer: `status` is "running" then.
  virtual void end(const std::string& status) = 0;
};

using MakeSink = std::function<std::unique_ptr<MetricSink>(const run::RunFolder& folder)>;

/// Removes the event files that forge wrote there, but for one.
void remove_event_files(const fs::path& folder, const fs::path& but = {});

/// An event file of TensorBoard in `output`/<run>/, which grows with each flush, and another one
/// after each end of the run. Those of an earlier export are removed. TensorBoard forgets steps
/// that are repeated.
MakeSink tensorboard_sink(const fs::path& output);

/// A run of Weights & Biases by its own Python client, a process of `python3` for each run, which
/// writes below `output`; without WANDB_MODE in the environment it works offline. W&B keeps the
/// first value of a step that is repeated. Throws Error where the package is not installed, and at
/// the end where the client failed.
MakeSink wandb_sink(worker::Launcher& launcher, const fs::path& output);

}  // namespace forge::app
