#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/store/result_store.h"
#include "core/store/run_summary.h"

namespace forge::store {

/// The columns of a run by name, missing values as null.
nlohmann::json columns_of(const RunSummary& run);

/// Names of all columns, in the table's order.
const std::vector<std::string>& column_names();

/// Throws Error for a name that is no column's, with near misses.
void require_columns(const std::vector<std::string>& names);

/// Which runs are wanted, and in which order.
struct RunQuery {
  /// Any of them must match the run's id or config: patterns with * and ?, or beginnings.
  std::vector<std::string> patterns;
  /// All must hold: COLUMN=VALUE, COLUMN!=VALUE, or with <, <=, >, >= for numbers and for texts by
  /// their bytes. A column without a value meets none of them. tag=x: one of its tags is x.
  std::vector<std::string> conditions;
  /// Columns, the first counts most; "-column" puts large values first. Runs without a value come
  /// last. None: as they were.
  std::vector<std::string> order;
  size_t limit = 0;  ///< at most so many; 0: all
};

/// Throws Error for an unknown column, with near misses, and for a condition that is none.
std::vector<RunSummary> select(std::vector<RunSummary> runs, const RunQuery& query);

/// What the run has of a column or of a dotted key of its config; null where it has no value.
nlohmann::json value_of(const ConfiguredRun& run, const std::string& name);

/// Throws Error for a name that is neither a column nor a key of the config, with near misses.
void require_names(const std::vector<std::string>& names);

/// The runs that meet all conditions, which may be on keys of the config too:
/// model.canon.set=AC, optimizer.lr>1e-3.
std::vector<ConfiguredRun> select(std::vector<ConfiguredRun> runs,
                                  const std::vector<std::string>& conditions);

}  // namespace forge::store
