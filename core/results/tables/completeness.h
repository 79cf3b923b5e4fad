#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"

/// Whether a table shows all that was made for it, as it was planned.
namespace forge::tables {

/// Whether runs of the seed chose the row's value of best_of, and the row does not show them.
bool is_tuning_seed_of(const AblationRow& row, const std::string& seed);

/// Runs that somebody chose from a sample are no sample: chosen by their losses, any row could be
/// made the best. A row that lacks runs of its sample, or results of a seed, because of a filter,
/// because they are archived or because of their train.log_every is compared with nothing, and
/// neither is one with seeds that failed or were stopped, or that is not the best of all values of
/// best_of. The row's plan is that of its first runs, hidden or not, or made under another name
/// (`options.repetitions`). `of_table`: the runs that rows were chosen from. `shown`: the run that
/// `row.run` is the summary of; null if there is none.
void check_completeness(const TableSpec& table,
                        const std::vector<const store::ConfiguredRun*>& of_table,
                        const AblationOptions& options,
                        const store::ConfiguredRun* shown,
                        AblationRow& row);

/// Of the plan, of the table itself, and of repeated runs: what the line above the table says.
std::vector<SetupEntry> describe_history(const TableSpec& declared, const Ablation& ablation);

}  // namespace forge::tables
