#pragma once

#include "core/results/tables/ablation.h"
#include "core/results/tables/made_runs.h"

/// Which seeds were known when a row was planned: who picks among these picks results.
namespace forge::tables {

/// Lets a row be compared with nothing whose seeds may have been chosen by what was known of them.
/// A seed is known from the first loss of the first run that told of it, with any setting, of any
/// row's config, under the names that these had before (MadeRuns::behind). The seeds that were
/// known when the row's runs of them were planned must be the first ones in the order in which they
/// became known, or as another such row, whose runs had then told of them, has them: a row that
/// lacks one before its last may have passed over it. New seeds are always a sample, and so is a
/// row with a single seed that was known, which says nothing yet. Seeds that tune the rows are not
/// lacked where the table, as its file declares it, had declared them before they were run
/// (is_tuning_run), nor are those that tuned another table (table_tuned_by) by a row that takes
/// none of these. Of those that it declared afterwards nobody knows whether they disappointed: a
/// row that was run with such seeds is compared with nothing. Neither is one that shows seeds which
/// were tuning seeds of the table when runs told of them, and are not any more: they may be the
/// luckiest of these. The rows' first runs and sets are known (check_completeness,
/// count_other_sets).
void check_seed_choice(const MadeRuns& made, const TableSpec& declared, Ablation& ablation);

}  // namespace forge::tables
