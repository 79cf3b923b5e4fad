#pragma once

#include <cstdint>
#include <vector>

#include "core/run/halving.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// How far a run of a search has come, from its events; with none it has not begun. What it was
/// sent to is in its attempts (AttemptStarted::stop_after), so that a search that was interrupted
/// is known from its runs alone; a step that is none of these rungs is another search's.
/// Evaluations behind the step that it was sent to do not count: a run may overtake its stop. Those
/// of a run that is completed, or was trained by another command, count all. Throws Error where an
/// evaluation at a rung lacks the score that the rule compares.
Contestant read_contestant(const RunFolder& folder,
                           const HalvingRule& rule,
                           const std::vector<int64_t>& rung_steps);

}  // namespace forge::run
