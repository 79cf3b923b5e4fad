#include "core/results/tables/run_metrics.h"

#include <algorithm>
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
using Key = std::pair<int64_t, Kind>;  ///< step and kind, in the order in which metrics are told

/// What one event says of a step.
struct StepMetrics {
  Key key;
  double seconds = 0;  ///< wall time of training
  std::vector<MetricPoint> metrics;
};

/// The key of an event with metrics.
std::optional<Key> key_of(const worker::Event& event) {
  if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event))
    return Key{metrics->step, training};
  if (const auto* found = std::get_if<worker::Evaluation>(&event))
    return Key{found->step, evaluation};
  return std::nullopt;
}

/// Reads the metrics of events. An evaluation has no clock of its own.
class MetricClock {
 public:
  /// `seconds`: of the last step that this attempt does not repeat.
  void begin(const worker::Started& started, double time, double seconds) {
    tokens_per_step_ = started.tokens_per_step;
    seconds_ = seconds;
    time_ = time;
  }

  StepMetrics read(const worker::TrainMetrics& event, double time) {
    seconds_ = event.elapsed_seconds;
    time_ = time;
    StepMetrics step{{event.step, training}, seconds_, {}};
    add_known(event, {"", event.step, event.tokens, seconds_, time, 0}, step.metrics);
    return step;
  }

  StepMetrics read(const worker::Evaluation& event, double time) const {
    std::optional<int64_t> tokens;
    if (tokens_per_step_ > 0 &&
        event.step <= std::numeric_limits<int64_t>::max() / tokens_per_step_) {
      tokens = event.step * tokens_per_step_;
    }
    const double seconds = seconds_ + std::max(0.0, time - time_);
    StepMetrics step{{event.step, evaluation}, seconds, {}};
    add_known(event, {"", event.step, tokens, seconds, time, 0}, step.metrics);
    for (const auto& [name, score] : event.scores)
      step.metrics.push_back({name, event.step, tokens, seconds, time, score.value});
    return step;
  }

 private:
  template <class Event>
  static void add_known(const Event& event, MetricPoint point, std::vector<MetricPoint>& metrics) {
    for (const auto& [name, value] : worker::metrics_of(event)) {
      if (!results::find_metric(name)) continue;
      point.name = name;
      point.value = value;
      metrics.push_back(point);
    }
  }

  int64_t tokens_per_step_ = 0;
  // Wall time of training was so long at this time.
  double seconds_ = 0;
  double time_ = 0;
};

using Take = std::function<void(const MetricPoint&)>;

void tell(const StepMetrics& step, const Take& take) {
  for (const MetricPoint& metric : step.metrics) take(metric);
}

/// Metrics whose steps rise but for those that a later attempt repeats: holds one step.
class InOrder {
 public:
  InOrder(const std::vector<int64_t>& repeated_behind, const Take& take)
      : repeated_behind_(repeated_behind), take_(take) {}

  void begin_attempt(int64_t) { ++attempt_; }
  double last_seconds() const { return last_.seconds; }
  void add(StepMetrics step) {
    if (step.key.first > repeated_behind_[attempt_]) return;
    if (step.key != last_.key) tell(last_, take_);
    last_ = std::move(step);
  }
  void finish() { tell(last_, take_); }

 private:
  const std::vector<int64_t>& repeated_behind_;
  const Take& take_;
  size_t attempt_ = 0;
  StepMetrics last_{{-1, training}, 0, {}};
};

/// Metrics of steps in any order: holds all.
class AnyOrder {
 public:
  explicit AnyOrder(const Take& take) : take_(take) {}

  void begin_attempt(int64_t first_step) {
    by_step_.erase(by_step_.upper_bound(Key{first_step, evaluation}), by_step_.end());
  }
  double last_seconds() const { return by_step_.empty() ? 0 : by_step_.rbegin()->second.seconds; }
  void add(StepMetrics step) { by_step_[step.key] = std::move(step); }
  void finish() {
    for (const auto& [key, step] : by_step_) tell(step, take_);
  }

 private:
  const Take& take_;
  std::map<Key, StepMetrics> by_step_;
};

/// Reads the lines before byte `end`.
template <class Steps>
void read_steps(const fs::path& events, int64_t end, Steps steps) {
  MetricClock clock;
  run::EventReader lines(events, 0);
  while (lines.next_offset() < end) {
    const std::optional<run::ReadLine> line = lines.next();
    if (!line) break;
    if (!line->event) continue;
    const double time = line->event->time;
    if (const worker::Started* const started = run::started_of(*line->event)) {
      // A resumed run repeats the steps behind its checkpoint.
      steps.begin_attempt(started->first_step);
      clock.begin(*started, time, steps.last_seconds());
    }
    if (!line->event->event) continue;
    const worker::Event& event = *line->event->event;
    if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
      steps.add(clock.read(*metrics, time));
    } else if (const auto* found = std::get_if<worker::Evaluation>(&event)) {
      steps.add(clock.read(*found, time));
    }
  }
  steps.finish();
}

int64_t seed_of(const run::RunFolder& folder) {
  const nlohmann::json config = folder.config();
  const nlohmann::json* const seed = find_value(config, "seed");
  if (!seed || !seed->is_number_integer())
    throw Error("'" + folder.config_file().string() + "' names no seed", ExitCode::failed);
  return seed->get<int64_t>();
}

}  // namespace

MetricSource::MetricSource(const run::RunFolder& folder) : events_(folder.events_file()) {
  run_.run_id = folder.id();
  run_.config = folder.record().config;
  run_.seed = seed_of(folder);
  Key last{std::numeric_limits<int64_t>::min(), training};
  run::EventReader lines(events_, 0);
  while (const std::optional<run::ReadLine> line = lines.next()) {
    if (!line->event) {
      run_.warnings.push_back("'" + events_.string() + "', byte " + std::to_string(line->offset) +
                              ": " + line->problem + "; the line is skipped");
      continue;
    }
    if (const worker::Started* const started = run::started_of(*line->event)) {
      repeated_behind_.push_back(started->first_step);
      last = std::min(last, Key{started->first_step, evaluation});
    }
    if (!line->event->event) continue;
    if (const auto key = key_of(*line->event->event)) {
      in_order_ = in_order_ && *key >= last;
      last = *key;
    }
  }
  end_ = lines.next_offset();
  // What an attempt says of a step is repeated by any of the later ones.
  repeated_behind_.push_back(std::numeric_limits<int64_t>::max());
  for (size_t i = repeated_behind_.size() - 1; i-- > 0;)
    repeated_behind_[i] = std::min(repeated_behind_[i], repeated_behind_[i + 1]);
}

void MetricSource::for_each(const Take& take) const {
  if (in_order_) {
    read_steps(events_, end_, InOrder(repeated_behind_, take));
  } else {
    read_steps(events_, end_, AnyOrder(take));
  }
}

std::vector<MetricPoint> metrics_of_event(const worker::Event& event, double time) {
  MetricClock clock;
  StepMetrics step;
  if (const auto* metrics = std::get_if<worker::TrainMetrics>(&event)) {
    step = clock.read(*metrics, time);
  } else if (const auto* found = std::get_if<worker::Evaluation>(&event)) {
    step = clock.read(*found, time);
  }
  for (MetricPoint& metric : step.metrics) {
    metric.tokens.reset();
    metric.wall_seconds = 0;
  }
  return std::move(step.metrics);
}

RunMetrics read_run_metrics(const run::RunFolder& folder) {
  const MetricSource source(folder);
  RunMetrics run = source.run();
  source.for_each([&](const MetricPoint& metric) { run.metrics.push_back(metric); });
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

std::string metrics_csv_line(const RunMetrics& run, const MetricPoint& metric) {
  return csv_field(run.run_id) + "," + csv_field(run.config) + "," + std::to_string(run.seed) +
         "," + std::to_string(metric.step) + "," +
         (metric.tokens ? std::to_string(*metric.tokens) : "") + "," +
         shortest(std::round(metric.wall_seconds * 1000) / 1000) + "," +
         std::to_string(std::llround(metric.time * 1000)) + "," + csv_field(metric.name) + "," +
         shortest(metric.value) + "\r\n";
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

std::string tensorboard_beginning(const MetricPoint& first) {
  return tensorboard_record(version_event(first.time));
}

std::string tensorboard_scalar(const MetricPoint& metric) {
  return tensorboard_record(scalar_event(metric));
}

std::string tensorboard_restart(double time, int64_t step) {
  Message session;
  session.add_integer(1, 1);  // status: START
  Message event;
  event.add_double(1, time);
  event.add_integer(2, step);
  event.add_bytes(7, session.bytes());
  return tensorboard_record(event.bytes());
}

std::string tensorboard_file_name(const MetricPoint& first) {
  return "events.out.tfevents." + std::to_string(std::llround(std::floor(first.time))) + ".forge";
}

}  // namespace forge::tables
