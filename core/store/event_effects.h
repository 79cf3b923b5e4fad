#pragma once

#include "core/run/event_log.h"
#include "core/store/read_ahead.h"
#include "core/store/run_summary.h"

namespace forge::store {

/// What a line of events.jsonl says about its run as a whole. Later lines win. How the run ended is
/// not told here: RunFolder::status() knows it from more than the log.
void apply(const run::StoredEvent& stored, RunSummary& run);

/// The newest time of these lines becomes that of the run.
void apply_times(const std::vector<ReadLine>& lines, RunSummary& run);

}  // namespace forge::store
