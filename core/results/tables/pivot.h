#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/sheet.h"

/// Pivot tables: one metric of runs by their values of one or two keys.
namespace forge::tables {

struct PivotOptions {
  std::string rows;     ///< column or key of the config (core/results/store/result_store.h)
  std::string columns;  ///< another one, or ""
  std::string metric;   ///< a metric
  std::vector<std::string> filter = {};  ///< conditions that the runs were chosen by, as typed
};

/// The completed runs that have one value of each key: those of one sample, as in a row of a table.
struct PivotCell {
  std::vector<std::string> runs;  ///< ids of one sample (sample_of in comparability.h)
  statistics::Summary summary;    ///< of the metric, as of a table's row; n = 0 without runs
  std::optional<int64_t> cases;   ///< that the newest run evaluated; none for what is no score
  std::string disturbance;        ///< load_text of its runs where the metric is a timing, else ""
  size_t left_out = 0;            ///< other runs of the cell's values: completed, or as `excluded`
};

struct Pivot {
  PivotOptions options;
  std::vector<std::string> row_values;     ///< numbers first, each in order
  std::vector<std::string> column_values;  ///< a single "" without `columns`
  std::vector<std::vector<PivotCell>> cells;
  std::vector<ExcludedRuns> excluded;             ///< other runs of the cells' values, and why
  std::vector<std::string> differ_between_cells;  ///< what else the cells differ in
  std::vector<std::string> changed_inputs;        ///< changed_inputs_text of the cells' samples
  std::string
      unreliable_timing;  ///< what is to be said of the cells with a disturbance; "" of none
  size_t without = 0;     ///< completed runs without the metric
};

/// `filtered_out` are the runs that do not meet the filter, or are archived: those with the values
/// of a cell are left out of it. Throws Error for an unknown key or metric.
Pivot build_pivot(const std::vector<store::ConfiguredRun>& runs,
                  const PivotOptions& options,
                  const std::vector<store::ConfiguredRun>& filtered_out = {});

/// As text for people; what the cells differ in besides stands in the notes.
Sheet make_sheet(const Pivot& pivot);

nlohmann::ordered_json to_json(const Pivot& pivot);

/// RFC 4180: a line for each cell that has runs: the mean of its runs, its interval, of scores the
/// number of cases, how many runs there are and how many are left out, and the filter. What
/// `remarks` says is not in it.
std::string to_csv(const Pivot& pivot);

/// What a reader of the cells alone must know: what they differ in besides, and whose timings
/// say little, which runs are left out and why. A line each.
std::vector<std::string> remarks(const Pivot& pivot);

}  // namespace forge::tables
