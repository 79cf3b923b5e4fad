#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/sheet.h"

/// Tables that nobody declared: one metric of runs by what they have of one or two keys.
namespace forge::tables {

struct PivotOptions {
  std::string rows;     ///< column or key of the config (core/results/store/result_store.h)
  std::string columns;  ///< another one, or ""
  std::string metric;   ///< a metric
};

/// The completed runs that have one value of each key.
struct PivotCell {
  std::vector<std::string> runs;  ///< their ids
  statistics::Summary summary;    ///< of the metric; n = 0 without runs
};

struct Pivot {
  PivotOptions options;
  std::vector<std::string> row_values;     ///< numbers by their size, texts by their letters
  std::vector<std::string> column_values;  ///< a single "" without `columns`
  std::vector<std::vector<PivotCell>> cells;
  std::vector<std::string>
      differ_within_cells;  ///< in what runs of one cell differ beside the seed: no sample
  std::vector<std::string> differ_between_cells;  ///< in what else the cells differ from each other
  size_t without = 0;                             ///< completed runs that lack the metric
};

/// Throws Error for a key or a metric that there is not.
Pivot build_pivot(const std::vector<store::ConfiguredRun>& runs, const PivotOptions& options);

/// As text for people; what the cells pool or differ in besides stands in the footnotes.
Sheet make_sheet(const Pivot& pivot);

nlohmann::ordered_json to_json(const Pivot& pivot);

}  // namespace forge::tables
