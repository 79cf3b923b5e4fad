#include "core/store/forecast.h"

#include <algorithm>

namespace forge::store {
const RunSummary* newest_like(const std::vector<RunSummary>& past, const Likeness& likeness) {
  const auto is_like = [&](const RunSummary& run) {
    return run.status == run::RunState::completed && run.config == likeness.config &&
           run.project == likeness.project && run.tokens_per_step == likeness.tokens_per_step &&
           (!likeness.device_name || run.device_name == *likeness.device_name) &&
           run.max_steps > 0 && run.wall_seconds.value_or(0) > 0;
  };
  const auto found = std::find_if(past.begin(), past.end(), is_like);
  return found == past.end() ? nullptr : &*found;
}

double seconds_for(int64_t steps, const RunSummary& run) {
  return run.wall_seconds.value_or(0) * double(steps) / double(run.max_steps);
}

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
  const RunSummary* like = newest_like(
      past,
      {inputs.project, inputs.config, tokens_per_step, inputs.backend.environment.device_name});
  if (!like) return forecast;
  forecast.seconds = seconds_for(forecast.steps, *like);
  forecast.memory_bytes = like->peak_memory_bytes;
  return forecast;
}

}  // namespace forge::store
