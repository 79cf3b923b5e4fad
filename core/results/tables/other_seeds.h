#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"

/// Seeds of a row's experiment that the table does not show.
namespace forge::tables {

/// The same for runs of one experiment, and seldom for others. Their configs, which decide it, take
/// longer to read.
std::string rough_experiment_key(const store::RunSummary& run);

/// Adds, for each row of several seeds, those that it does not show of its experiment, or of one
/// whose runs its own repeat, and that runs under other names or settings completed: its own may
/// have been chosen by what these found. `runs`: of the project, as the table gets them.
void add_other_seeds(const std::vector<store::ConfiguredRun>& runs,
                     const AblationOptions& options,
                     Ablation& ablation);

/// What the line above the table says of these seeds; without a name if there are none.
SetupEntry describe_other_seeds(const Ablation& ablation);

}  // namespace forge::tables
