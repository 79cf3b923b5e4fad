#pragma once

#include <string>

#include "core/results/store/run_summary.h"
#include "core/results/tables/table_spec.h"

/// What a table asks of its runs, as keys that runs keep: who asks something else later is found.
namespace forge::tables {

/// Names what the claim asserts, but not its words, its unit or its place in the table: 12 hex
/// digits.
std::string claim_key(const ClaimSpec& claim);

/// Names all that decides what the table tests: its rows, baseline, columns, conditions, limits,
/// source of speeds and claims with their words, but neither how it looks nor published numbers,
/// with which nothing is tested, nor how many seeds it wants: 12 hex digits.
std::string design_key(const TableSpec& table);

/// What runs record of the table: its design_key, and behind it the tuning seeds of its best_of,
/// "3f29a1c07b5e 901,902".
std::string recorded_design(const TableSpec& table);

/// Whether a run that recorded this was made for the table as it is. Runs of earlier versions
/// recorded keys without the limits, the source of speeds and half of best_of: of these nothing is
/// said.
bool is_design_of(const TableSpec& table, const std::string& recorded);

/// Whether the run was made to tune the table's rows: its seed is a tuning seed, and the table
/// declared that when the run was made, whatever else it has become since. Runs of earlier versions
/// recorded no tables: of these nothing is said.
bool is_tuning_run(const TableSpec& table, const store::RunSummary& run);

/// The other table that the run was made to tune, since all seeds of its command were tuning seeds
/// of that one: no row of this table shows it. "" for none, and for a tuning seed of this table.
/// Runs of earlier versions recorded no tuning seeds: of these nothing is said.
std::string table_tuned_by(const store::RunSummary& run, const TableSpec& own);

/// Whether the run's seed was a tuning seed of the table of that name when the run was made,
/// whatever the table was like. Runs of earlier versions recorded no tuning seeds: of these nothing
/// is said.
bool was_tuning_seed(const std::string& table, const store::RunSummary& run);

}  // namespace forge::tables
