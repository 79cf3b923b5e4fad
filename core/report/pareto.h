#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

/// A row by two of its figures, with the rows that are better in one and not worse in the other.
struct ParetoPoint {
  std::string config;
  std::string name;
  double first = 0;  ///< mean over seeds
  double second = 0;
  std::vector<std::string> dominated_by;  ///< names of rows; none: it is on the front
};

/// "quality" is the figure of the table's first column of a loss or score, "speed"
/// tokens_per_second, "memory" peak_memory_bytes; any other name is a figure as it stands. Throws
/// Error for a name that is no figure of the table.
std::string figure_named(const TableSpec& table, const std::string& name);

/// The comparable rows that have both figures, sorted by the first, best first. Judged by means: a
/// difference within noise counts as one.
std::vector<ParetoPoint> pareto(const Ablation& ablation,
                                const std::string& first,
                                const std::string& second);

}  // namespace forge::report
