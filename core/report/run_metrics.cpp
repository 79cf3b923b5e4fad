#include "core/report/run_metrics.h"

#include <cmath>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/report/csv.h"
#include "core/store/read_ahead.h"

namespace forge::report {
namespace {

enum Kind { training, evaluation };

/// Takes events one after the other.
class Collector {
 public:
  void take(const run::StoredEvent& stored) {
    if (!stored.event) return;
    if (const auto* started = std::get_if<protocol::Started>(&*stored.event))
      begin(*started, stored);
    if (const auto* metrics = std::get_if<protocol::TrainMetrics>(&*stored.event))
      add(*metrics, stored.time);
    if (const auto* found = std::get_if<protocol::Evaluation>(&*stored.event))
      add(*found, stored.time);
  }

  std::vector<Metric> metrics() const {
    std::vector<Metric> all;
    for (const auto& [key, several] : by_step_)
      all.insert(all.end(), several.begin(), several.end());
    return all;
  }

 private:
  using Key = std::pair<int64_t, Kind>;

  /// Steps behind the one that training goes on from are done again.
  void begin(const protocol::Started& started, const run::StoredEvent& stored) {
    by_step_.erase(by_step_.upper_bound(Key{started.first_step, evaluation}), by_step_.end());
    tokens_per_step_ = started.tokens_per_step;
    clock_seconds_ = by_step_.empty() ? 0 : by_step_.rbegin()->second.front().wall_seconds;
    clock_time_ = stored.time;
  }

  void add(const protocol::TrainMetrics& event, double time) {
    clock_seconds_ = event.elapsed_seconds;
    clock_time_ = time;
    std::vector<Metric>& metrics = by_step_[{event.step, training}];
    metrics.clear();
    const auto one = [&](const char* name, double value) {
      metrics.push_back({name, event.step, event.tokens, event.elapsed_seconds, time, value});
    };
    one("train_loss", event.loss);
    one("learning_rate", event.learning_rate);
    one("gradient_norm", event.gradient_norm);
    one("tokens_per_second", event.tokens_per_second);
  }

  void add(const protocol::Evaluation& event, double time) {
    std::optional<int64_t> tokens;
    if (tokens_per_step_ > 0 &&
        event.step <= std::numeric_limits<int64_t>::max() / tokens_per_step_) {
      tokens = event.step * tokens_per_step_;
    }
    const double seconds = clock_seconds_ + std::max(0.0, time - clock_time_);
    std::vector<Metric>& metrics = by_step_[{event.step, evaluation}];
    metrics.clear();
    metrics.push_back({"eval_loss", event.step, tokens, seconds, time, event.loss});
    for (const auto& [name, score] : event.scores)
      metrics.push_back({name, event.step, tokens, seconds, time, score.value});
  }

  std::map<Key, std::vector<Metric>> by_step_;
  int64_t tokens_per_step_ = 0;
  // Wall time of training was so long at this time.
  double clock_seconds_ = 0;
  double clock_time_ = 0;
};

int64_t seed_of(const run::RunFolder& folder) {
  const nlohmann::json config = try_parse_json(read_file(folder.config_file()));
  const auto seed = config.is_object() ? config.find("seed") : config.end();
  if (seed == config.end() || !seed->is_number_integer()) {
    throw Error("'" + folder.config_file().string() + "' names no seed", {}, "", ExitCode::failed);
  }
  return seed->get<int64_t>();
}

}  // namespace

RunMetrics read_run_metrics(const run::RunFolder& folder) {
  RunMetrics run;
  run.run_id = folder.id();
  run.config = folder.record().config;
  run.seed = seed_of(folder);
  Collector collector;
  for (const store::ReadLine& line : store::read_ahead(folder.events_file(), 0).lines) {
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
  for (const Metric& metric : run.metrics) {
    text += beginning + std::to_string(metric.step) + ",";
    if (metric.tokens) text += std::to_string(*metric.tokens);
    text += "," + shortest(std::round(metric.wall_seconds * 1000) / 1000) + "," +
            std::to_string(std::llround(metric.time * 1000)) + "," + csv_field(metric.name) + "," +
            shortest(metric.value) + "\r\n";
  }
  return text;
}

}  // namespace forge::report
