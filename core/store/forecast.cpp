#include "core/store/forecast.h"

#include <algorithm>

namespace forge::store {
namespace {

bool is_like(const RunSummary& past, const run::RunInputs& inputs, int64_t tokens_per_step) {
  return past.status == run::RunState::completed && past.config == inputs.config &&
         past.project == inputs.project && past.tokens_per_step == tokens_per_step &&
         past.device_name == inputs.backend.environment.device_name && past.max_steps > 0 &&
         past.wall_seconds.value_or(0) > 0;
}

}  // namespace

Forecast forecast(const std::vector<RunSummary>& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs) {
  const nlohmann::json& train = inputs.experiment.at("train");
  const int64_t tokens_per_step =
      train.at("batch_size").get<int64_t>() * train.at("seq_len").get<int64_t>();
  Forecast forecast;
  forecast.steps = train.at("max_steps").get<int64_t>();
  if (planned.action == run::Action::cached) forecast.steps = 0;
  for (const RunSummary& run : past) {
    if (run.id == planned.record.id && forecast.steps > 0)
      forecast.steps = std::max<int64_t>(forecast.steps - run.step, 0);
  }
  // Newest first.
  const auto like = std::find_if(past.begin(), past.end(), [&](const RunSummary& run) {
    return is_like(run, inputs, tokens_per_step);
  });
  if (like == past.end()) return forecast;
  forecast.seconds = *like->wall_seconds * double(forecast.steps) / double(like->max_steps);
  forecast.memory_bytes = like->peak_memory_bytes;
  return forecast;
}

}  // namespace forge::store
