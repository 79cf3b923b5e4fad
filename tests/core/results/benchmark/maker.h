#pragma once

#include <string>

#include "core/config/experiment.h"
#include "core/results/benchmark/benchmark.h"
#include "tests/support/fake_runs.h"

namespace forge::tests {

/// A record as a measurement of a call on `day` of November 2026 would make it: of a MadeRun's
/// experiment, on its device.
inline benchmark::Record made_record(const std::string& config,
                                     int day,
                                     double tokens_per_second,
                                     const config::Experiment& experiment = MadeRun().experiment) {
  const std::string date = "2026-11-" + std::string(day < 10 ? "0" : "") + std::to_string(day);
  benchmark::Record record;
  record.id = date + "-" + config;
  record.call.id = date;
  record.call.created = date + "T10:00:00.000Z";
  record.call.command = "forge bench " + config;
  record.call.configs = {config};
  record.device = {"cpu", "Test CPU", 2, {{"torch", "1.13.1"}}, "libtorch", "0.1.0", 1};
  record.project = "projects/canon";
  record.config = config;
  record.profile = "quick";
  record.precision = "float32";
  const nlohmann::json resolved = config::to_json(experiment);
  record.model = resolved.at("model");
  record.train = benchmark::speed_keys(resolved);
  record.settings = benchmark::speed_settings(resolved);
  record.window_steps = 4;
  record.tokens_per_step = 16384;
  record.windows = {0.99 * tokens_per_second, tokens_per_second, 1.01 * tokens_per_second};
  record.tokens_per_second = tokens_per_second;
  record.spread = 0.005;
  record.step_seconds = 16384 / tokens_per_second;
  record.parts = benchmark::StepBreakdown{0.001, 0.25, 0.5, 0.125};
  record.peak_memory_bytes = int64_t{1} << 30;
  return record;
}

}  // namespace forge::tests
