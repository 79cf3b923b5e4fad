#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/run_folder.h"
#include "core/worker/messages.h"

namespace forge::tables {

/// A metric of a run at a step of its training.
struct MetricPoint {
  std::string name;  ///< "train_loss", "learning_rate", …, "eval_loss", or a score's
  int64_t step = 0;
  std::optional<int64_t> tokens;  ///< trained on by then; none: not known
  double wall_seconds = 0;        ///< since training began, while it ran
  double time = 0;                ///< of the event, seconds since 1970
  double value = 0;
};

/// The metrics that a run reported.
struct RunMetrics {
  std::string run_id;
  std::string config;
  int64_t seed = 0;
  std::vector<MetricPoint> metrics;   ///< by step, those of training before those of an evaluation
  std::vector<std::string> warnings;  ///< lines of the events file that were skipped
};

/// The metrics of a run, read from its events twice: first for what later attempts repeat, then one
/// metric after another, so that those of a long run need not fit in memory.
class MetricSource {
 public:
  /// Throws Error if the run's files cannot be read.
  explicit MetricSource(const run::RunFolder& folder);

  /// The run without its metrics.
  const RunMetrics& run() const { return run_; }
  /// Calls `take` with each metric in the order of RunMetrics. A step that was repeated after a
  /// resume counts once, by its last event. Holds the metrics of one step, or of all where
  /// something other than forge has put the steps out of order.
  void for_each(const std::function<void(const MetricPoint&)>& take) const;

 private:
  RunMetrics run_;
  std::filesystem::path events_;
  int64_t end_ = 0;  ///< of what was read first: the file may grow
  bool in_order_ = true;
  std::vector<int64_t> repeated_behind_;  ///< steps behind these are repeated, for each attempt
};

/// The metrics of one event, as they come while a run trains; none of other events. Tokens and wall
/// time are not known.
std::vector<MetricPoint> metrics_of_event(const worker::Event& event, double time);

/// All of them.
RunMetrics read_run_metrics(const run::RunFolder& folder);

/// A line under metrics_csv_header; W&B, MLflow and pandas read it.
std::string metrics_csv_line(const RunMetrics& run, const MetricPoint& metric);

/// "run_id,config,seed,step,tokens,wall_seconds,timestamp_ms,metric,value": RFC 4180, a metric that
/// is not there is empty, one that is no number "nan".
std::string metrics_csv_header();

// Event files of TensorBoard: records as TensorFlow frames them
// (tensorflow/core/lib/io/record_writer.h), each a protobuf message Event
// (tensorflow/core/util/event.proto) with one scalar in a Summary.

/// CRC-32C (Castagnoli; RFC 3720, B.4).
uint32_t crc32c(std::string_view bytes);

/// The record of these bytes: length, its checksum, the bytes, their checksum.
std::string tensorboard_record(std::string_view bytes);

/// The beginning of a run's event file.
std::string tensorboard_beginning(const MetricPoint& first);

/// What follows for every metric: a scalar under its name, at its step and with the time of its
/// event. Values are single precision, as TensorBoard has them.
std::string tensorboard_scalar(const MetricPoint& metric);

/// Says that the run begins again with `step`: TensorBoard forgets what it has from there on.
std::string tensorboard_restart(double time, int64_t step);

/// events.out.tfevents.<seconds since 1970 of the first metric>.forge: TensorBoard looks for such
/// names, one folder a run.
std::string tensorboard_file_name(const MetricPoint& first);

}  // namespace forge::tables
