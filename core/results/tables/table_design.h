#pragma once

#include <string>

#include "core/results/tables/table_spec.h"

/// What a table asks of its runs, as keys that runs keep: who asks something else later is found.
namespace forge::tables {

/// Names what the claim asserts, but not its words, its unit or its place in the table: 12 hex
/// digits.
std::string claim_key(const ClaimSpec& claim);

/// Names all that decides what the table tests: its rows, baseline, columns, conditions and claims
/// with their words, but not how it looks nor how many seeds it wants: 12 hex digits.
std::string design_key(const TableSpec& table);

}  // namespace forge::tables
