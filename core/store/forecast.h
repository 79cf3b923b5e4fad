#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run/plan.h"
#include "core/store/run_summary.h"

namespace forge::store {

/// What is left of a planned run, as far as past runs tell.
struct Forecast {
  int64_t steps = 0;              ///< left
  std::optional<double> seconds;  ///< for them; nothing where there is no run like it
  std::optional<int64_t> memory_bytes;
};

/// Runs whose steps take as long as each other's, as far as that can be known.
struct Likeness {
  std::string project;
  std::string config;
  int64_t tokens_per_step = 0;
  std::optional<std::string> device_name;  ///< none: any
};

/// The newest completed run like that, whose duration is known; `past` is sorted, newest first.
const RunSummary* newest_like(const std::vector<RunSummary>& past, const Likeness& likeness);

/// Seconds for so many steps like those of `run`.
double seconds_for(int64_t steps, const RunSummary& run);

/// From the newest completed run of the same config and project on the same device whose steps have
/// as many tokens; a run that is cached needs nothing.
Forecast forecast(const std::vector<RunSummary>& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs);

}  // namespace forge::store
