#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/benchmark/record.h"
#include "core/report/table_spec.h"

/// Speeds of a table's rows from `forge bench` instead of from the rows' runs.
namespace forge::report {

/// The measurement that a row shows.
struct MeasuredSpeed {
  benchmark::Record record;
  /// How it was measured otherwise than the others, "measured in another call, on 2026-11-20"; ""
  /// where it can be compared with the baseline's.
  std::string otherwise;
};

/// For each row of the table its measurement, none where there is none: of the call that measured
/// the most rows, the newest of those; of rows that it did not measure their newest one, which says
/// so. `records` are measurements of training, of any configs.
std::vector<std::optional<MeasuredSpeed>> choose_speeds(
    const TableSpec& table, const std::vector<benchmark::Record>& records);

/// How the speeds that can be compared were measured, in one line; "" where there are none.
std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds);

/// The command that measures all rows in one call.
std::string bench_command(const TableSpec& table);

}  // namespace forge::report
