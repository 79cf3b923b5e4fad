#pragma once

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

}  // namespace forge::tables
