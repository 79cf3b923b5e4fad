#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/report/run_metrics.h"

/// Event files of TensorBoard: records as TensorFlow frames them
/// (tensorflow/core/lib/io/record_writer.h), each a protobuf message Event
/// (tensorflow/core/util/event.proto) with one scalar in a Summary.
namespace forge::report {

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

}  // namespace forge::report
