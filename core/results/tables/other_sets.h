#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/made_runs.h"

/// What else was run of a table's configs: who made it could show it in the place of what is shown.
namespace forge::tables {

/// Finds, for each row of several seeds, the other sets of runs of its config: with any setting
/// that the table does not vary itself, other files, threads, devices or versions. It does not
/// matter whether they are shown, archived, left out by a filter or of another model. So do those
/// of the configs and projects whose runs its own repeat (RunHistory::behind), for these are older
/// names of it. A set counts if two of its seeds were trained and ended, however, and found another
/// loss than the row's. Sets that other rows show do not, unless they show another value of the
/// table's `by` that was known before this one's second seed was run: such a value is one attempt
/// more.
///
/// Neither do those that another table of the project, which its runs recorded as it is now,
/// accounts for: they differ in nothing but what that table varies by `best_of` or `budget`, and
/// conditions of this table keep them from standing here. Of its tuning seeds, which this table
/// does not show, nothing counts. Of others the table counts once, if the runs that are shown
/// recorded it too, so that both were declared before anything was known: `RunSets::tables`.
///
/// `declared`: the table's file.
void count_other_sets(const MadeRuns& made,
                      const TableSpec& declared,
                      const AblationOptions& options,
                      Ablation& ablation);

/// Which of several sets of runs is compared.
struct SetPlace {
  size_t number = 1;  ///< in the order in which the sets were made
  size_t tables = 0;  ///< declared together with this one, with runs that were made before

  /// By what each p is multiplied for it (statistics::set_factor).
  double factor() const;
};

/// That of rows which are compared with each other. Before it come the sets that were made before
/// the last of these rows was, here or where they were imported from. Where sets of two rows go
/// together in several ways, each way is a set. What is made later changes nothing, and neither
/// does what other rows were tried with.
SetPlace place_of(const std::vector<const AblationRow*>& rows);

/// What the line above the table says of them; without a name if there are none.
SetupEntry describe_other_sets(const Ablation& ablation);

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
