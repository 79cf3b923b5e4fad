#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/run_folder.h"

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

/// Reads the run's events. A step that was repeated after a resume counts once, by its last event.
/// Throws Error if the run's files cannot be read.
RunMetrics read_run_metrics(const run::RunFolder& folder);

/// One line for each metric, under metrics_csv_header; W&B, MLflow and pandas read it.
std::string to_metrics_csv(const RunMetrics& run);

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

/// The whole event file of a run: every metric as a scalar under its name, at its step and with the
/// time of its event. Values are single precision, as TensorBoard has them. The same run gives the
/// same bytes.
std::string to_tensorboard(const RunMetrics& run);

/// events.out.tfevents.<seconds since 1970 of the first metric>.forge: TensorBoard looks for such
/// names, one folder a run.
std::string tensorboard_file_name(const RunMetrics& run);

}  // namespace forge::tables
