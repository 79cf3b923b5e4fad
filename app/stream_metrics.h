#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "app/metric_sinks.h"
#include "app/terminal.h"
#include "core/run/run_folder.h"

namespace forge::app {

struct Streamed {
  size_t runs = 0;  ///< that had metrics
  size_t metrics = 0;
};

/// Streams the metrics of runs into sinks while they train, from their first event on, until no run
/// goes on or waits any more, or after Ctrl-C. `new_runs` is asked for runs that have come since,
/// now and then. `progress` counts the runs of the first round.
Streamed stream_metrics(const std::vector<run::RunFolder>& folders,
                        const MakeSink& make_sink,
                        const Interrupts& interrupts,
                        const std::function<std::vector<run::RunFolder>()>& new_runs,
                        const CountProgress& progress);

}  // namespace forge::app
