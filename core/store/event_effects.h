#pragma once

#include <nlohmann/json.hpp>

#include "core/protocol/messages.h"
#include "core/store/run_summary.h"

namespace forge::store {

/// What an event says about its run as a whole. Later events win.
void apply(const protocol::Event& event, RunSummary& run);

/// The same for the lines of events.jsonl that the supervisor writes itself: "attempt" and "ended".
/// False where the line is of another kind.
bool apply_supervisor_line(const nlohmann::json& line, RunSummary& run);

}  // namespace forge::store
