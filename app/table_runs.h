#pragma once

#include <vector>

#include "app/select_runs.h"

namespace forge::app {

/// The runs of a table's rows. Where the table tunes its rows on seeds of their own, or extends the
/// grid that they are tuned over, the next runs depend on the results of the last ones: these are
/// the runs that can be made now. `swept` are the sweeps of the command line.
SelectedRuns runs_of_table(const Context& context,
                           const RunSelection& selection,
                           const std::vector<run::Sweep>& swept,
                           const LaunchOptions& options);

}  // namespace forge::app
