#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/ablation.h"

namespace forge::tables {

/// What a row's metric says against the baseline's.
enum class Standing {
  baseline,  ///< it is the baseline's
  better,    ///< the difference stands: adjusted p at most 0.05
  worse,
  tie,             ///< the difference is within noise
  one_seed,        ///< one value on either side: nothing tells a difference from noise
  not_comparable,  ///< of a row that breaks the comparison, or where the baseline has no metric
};

/// "baseline", "better", "worse", "tie", "one seed", "not alike"
const char* name_of(Standing standing);

/// A metric of a row over its seeds.
struct Cell {
  std::vector<double> values;                        ///< one a seed, in the order of the row's runs
  statistics::Summary summary;                       ///< of them; n = 0 where the row has none
  std::optional<statistics::Difference> difference;  ///< own − the baseline's
  bool paired = false;                               ///< the seeds are the baseline's
  std::optional<double> p;                           ///< of the difference, by Holm over the rows
  Standing standing = Standing::not_comparable;
  /// Better than every other comparable row's, each difference standing (Holm over the others).
  bool best = false;
  /// Of one value where other rows tell how seeds scatter: how far it may be from the baseline's
  /// mean by chance alone, in 95 % of cases.
  std::optional<double> noise;
};

/// The smallest chance that is called one: differences whose adjusted p is larger are ties.
constexpr double significance = 0.05;

/// Whether runs of the two can be paired by their seeds.
bool have_same_seeds(const AblationRow& a, const AblationRow& b);

/// What two rows' values of a metric, one a run, say of their difference: by the paired test where
/// the rows have the same seeds, else by Welch's. None where one has too few.
std::optional<statistics::Difference> difference_between(const AblationRow& own_row,
                                                         const std::vector<double>& own,
                                                         const AblationRow& other_row,
                                                         const std::vector<double>& other);

/// The metric of that name (scores.h) of each row, in their order. Rows are compared with the
/// baseline of their division by the paired test where both have the same seeds, else by Welch's.
std::vector<Cell> cells_of(const Ablation& ablation, const std::string& metric);

/// The cells of several metrics by name.
using CellsByMetric = std::map<std::string, std::vector<Cell>>;
CellsByMetric cells_by_metric(const Ablation& ablation, const std::vector<std::string>& metrics);

/// A row by two of its metrics, with the rows that are better in one and not worse in the other.
struct ParetoPoint {
  std::string config;
  std::string name;
  double first = 0;  ///< mean over seeds
  double second = 0;
  std::vector<std::string> dominated_by;  ///< names of rows; none: it is on the front
};

/// "quality" is the metric of the table's first column of a loss or score, "speed"
/// tokens_per_second, "memory" peak_memory_bytes; any other name is a metric as it stands. Throws
/// Error for a name that is no metric of the table.
std::string metric_by_word(const TableSpec& table, const std::string& name);

/// The comparable rows that have both metrics, sorted by the first, best first. Judged by means: a
/// difference within noise counts as one.
std::vector<ParetoPoint> pareto(const Ablation& ablation,
                                const std::string& first,
                                const std::string& second);

}  // namespace forge::tables
