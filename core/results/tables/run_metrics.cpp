#include "core/results/tables/run_metrics.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/sheet.h"
#include "core/run/event_log.h"

namespace forge::tables {
namespace {

enum Kind { training, evaluation };

class Collector {
 public:
  void take(const run::StoredEvent& stored) {
    if (!stored.event) return;
    if (const auto* started = std::get_if<worker::Started>(&*stored.event)) begin(*started, stored);
    if (const auto* metrics = std::get_if<worker::TrainMetrics>(&*stored.event))
      add(*metrics, stored.time);
    if (const auto* found = std::get_if<worker::Evaluation>(&*stored.event))
      add(*found, stored.time);
  }

  std::vector<MetricPoint> metrics() const {
    std::vector<MetricPoint> all;
    for (const auto& [key, several] : by_step_)
      all.insert(all.end(), several.begin(), several.end());
    return all;
  }

 private:
  using Key = std::pair<int64_t, Kind>;

  /// A resumed run repeats the steps behind its checkpoint.
  void begin(const worker::Started& started, const run::StoredEvent& stored) {
    by_step_.erase(by_step_.upper_bound(Key{started.first_step, evaluation}), by_step_.end());
    tokens_per_step_ = started.tokens_per_step;
    clock_seconds_ = by_step_.empty() ? 0 : by_step_.rbegin()->second.front().wall_seconds;
    clock_time_ = stored.time;
  }

  void add(const worker::TrainMetrics& event, double time) {
    clock_seconds_ = event.elapsed_seconds;
    clock_time_ = time;
    std::vector<MetricPoint>& metrics = by_step_[{event.step, training}];
    metrics.clear();
    for (const auto& [name, value] : worker::metrics_of(event)) {
      if (results::find_metric(name))
        metrics.push_back({name, event.step, event.tokens, event.elapsed_seconds, time, value});
    }
  }

  void add(const worker::Evaluation& event, double time) {
    std::optional<int64_t> tokens;
    if (tokens_per_step_ > 0 &&
        event.step <= std::numeric_limits<int64_t>::max() / tokens_per_step_) {
      tokens = event.step * tokens_per_step_;
    }
    const double seconds = clock_seconds_ + std::max(0.0, time - clock_time_);
    std::vector<MetricPoint>& metrics = by_step_[{event.step, evaluation}];
    metrics.clear();
    for (const auto& [name, value] : worker::metrics_of(event)) {
      if (results::find_metric(name))
        metrics.push_back({name, event.step, tokens, seconds, time, value});
    }
    for (const auto& [name, score] : event.scores)
      metrics.push_back({name, event.step, tokens, seconds, time, score.value});
  }

  std::map<Key, std::vector<MetricPoint>> by_step_;
  int64_t tokens_per_step_ = 0;
  // Wall time of training was so long at this time.
  double clock_seconds_ = 0;
  double clock_time_ = 0;
};

int64_t seed_of(const run::RunFolder& folder) {
  const nlohmann::json config = folder.config();
  const nlohmann::json* const seed = find_value(config, "seed");
  if (!seed || !seed->is_number_integer())
    throw Error("'" + folder.config_file().string() + "' names no seed", ExitCode::failed);
  return seed->get<int64_t>();
}

}  // namespace

RunMetrics read_run_metrics(const run::RunFolder& folder) {
  RunMetrics run;
  run.run_id = folder.id();
  run.config = folder.record().config;
  run.seed = seed_of(folder);
  Collector collector;
  for (const run::ReadLine& line : run::read_event_lines(folder.events_file(), 0).lines) {
    if (line.event) {
      collector.take(*line.event);
    } else {
      run.warnings.push_back("'" + folder.events_file().string() + "', byte " +
                             std::to_string(line.offset) + ": " + line.problem +
                             "; the line is skipped");
    }
  }
  run.metrics = collector.metrics();
  return run;
}

std::string metrics_csv_header() {
  return csv_line({"run_id",
                   "config",
                   "seed",
                   "step",
                   "tokens",
                   "wall_seconds",
                   "timestamp_ms",
                   "metric",
                   "value"});
}

std::string to_metrics_csv(const RunMetrics& run) {
  const std::string beginning =
      csv_field(run.run_id) + "," + csv_field(run.config) + "," + std::to_string(run.seed) + ",";
  std::string text;
  for (const MetricPoint& metric : run.metrics) {
    text += beginning + std::to_string(metric.step) + ",";
    if (metric.tokens) text += std::to_string(*metric.tokens);
    text += "," + shortest(std::round(metric.wall_seconds * 1000) / 1000) + "," +
            std::to_string(std::llround(metric.time * 1000)) + "," + csv_field(metric.name) + "," +
            shortest(metric.value) + "\r\n";
  }
  return text;
}

namespace {

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}

/// A checksum of bytes that themselves hold checksums is masked (record_writer.cc).
uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8; }

template <class Integer>
void append_little_endian(std::string& bytes, Integer value) {
  for (size_t i = 0; i < sizeof value; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}

template <class Bits, class Real>
void append_real(std::string& bytes, Real value) {
  static_assert(sizeof(Bits) == sizeof(Real));
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  append_little_endian(bytes, bits);
}

/// Fields of a protobuf message (https://protobuf.dev/programming-guides/encoding).
class Message {
 public:
  void add_double(int field, double value) {
    add_tag(field, 1);
    append_real<uint64_t>(bytes_, value);
  }
  void add_float(int field, float value) {
    add_tag(field, 5);
    append_real<uint32_t>(bytes_, value);
  }
  void add_integer(int field, int64_t value) {
    add_tag(field, 0);
    add_varint(static_cast<uint64_t>(value));
  }
  void add_bytes(int field, std::string_view bytes) {
    add_tag(field, 2);
    add_varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void add_tag(int field, int wire_type) {
    add_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
  }
  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// The first record of every event file.
std::string version_event(double time) {
  Message event;
  event.add_double(1, time);  // wall_time
  event.add_bytes(3, "brain.Event:2");
  return event.bytes();
}

std::string scalar_event(const MetricPoint& metric) {
  Message value;
  value.add_bytes(1, metric.name);
  value.add_float(2, static_cast<float>(metric.value));  // simple_value
  Message summary;
  summary.add_bytes(1, value.bytes());
  Message event;
  event.add_double(1, metric.time);
  event.add_integer(2, metric.step);
  event.add_bytes(5, summary.bytes());
  return event.bytes();
}

double first_time(const RunMetrics& run) {
  return run.metrics.empty() ? 0 : run.metrics.front().time;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string tensorboard_record(std::string_view bytes) {
  std::string record;
  append_little_endian(record, static_cast<uint64_t>(bytes.size()));
  append_little_endian(record, masked(crc32c(record)));
  record += bytes;
  append_little_endian(record, masked(crc32c(bytes)));
  return record;
}

std::string to_tensorboard(const RunMetrics& run) {
  std::string file = tensorboard_record(version_event(first_time(run)));
  for (const MetricPoint& metric : run.metrics) file += tensorboard_record(scalar_event(metric));
  return file;
}

std::string tensorboard_file_name(const RunMetrics& run) {
  return "events.out.tfevents." + std::to_string(std::llround(std::floor(first_time(run)))) +
         ".forge";
}

}  // namespace forge::tables
