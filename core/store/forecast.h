#pragma once

#include <cstdint>
#include <optional>
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

/// From the newest completed run of the same config and project on the same device whose steps have
/// as many tokens; a run that is cached needs nothing.
Forecast forecast(const std::vector<RunSummary>& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs);

}  // namespace forge::store
