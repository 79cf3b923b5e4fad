#pragma once

#include <string>

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

/// Whether a run that recorded the key was made for this table. Runs of earlier versions recorded
/// keys without the limits, the source of speeds and half of best_of: of these nothing is said.
bool is_design_of(const TableSpec& table, const std::string& recorded);

}  // namespace forge::tables
