#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/results/store/run_summary.h"

/// Runs that are older ones, made again under another name or with a setting that changes no
/// number.
namespace forge::tables {

/// By the id of a run, the first one with its numbers.
using FirstRuns = std::map<std::string, store::RunSummary>;

/// Finds the completed runs that found what an older one had found: with the same seed, the same
/// number of parameters and tokens, and the last loss of the evaluation or of the training equal to
/// the last bit. So the config's name, its project and every setting that changes no number may
/// differ, and so may the evaluation where the training is the same. The older one must have ended
/// before the repetition was planned, or nobody knew what it would find. A loss of few digits may
/// be equal by chance (statistics::rounding_step): of the evaluation it counts where the identities
/// are equal too. `runs`: of all configs, projects and workspaces, archived or not. Takes time in
/// proportion to their number, but for their sorting.
FirstRuns first_runs_of(const std::vector<store::RunSummary>& runs);

}  // namespace forge::tables
