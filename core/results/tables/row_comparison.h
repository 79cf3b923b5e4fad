#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/ablation.h"

namespace forge::tables {

/// A row's metric compared with the baseline's.
enum class Standing {
  baseline,        ///< it is the baseline's
  better,          ///< significant: adjusted p at most 0.05
  worse,           ///< the same
  tie,             ///< the difference is within noise
  one_seed,        ///< one value on either side: significance unknown
  not_tested,      ///< nothing says what chance does, such as seeds that do not differ
  not_comparable,  ///< the row violates conditions, or the baseline has no metric
};

/// "baseline", "better", "worse", "tie", "one seed", "not tested", "not alike"
const char* name_of(Standing standing);

/// A metric of a row over its seeds.
struct Cell {
  std::vector<double> values;                        ///< one a seed, in the order of the row's runs
  statistics::Summary summary;                       ///< of them; n = 0 without values
  std::optional<statistics::Difference> difference;  ///< own − the baseline's
  bool paired = false;                               ///< both have the same seeds
  /// The seeds that both rows have and the difference is of, if one has more of them: it is then
  /// not that of the means. Else 0.
  size_t common_seeds = 0;
  std::optional<double> p;       ///< of the difference, over all that the table tests (verdicts.h)
  std::optional<double> best_p;  ///< of not being better than every other comparable row; the same
  Standing standing = Standing::not_comparable;
  std::string why_not_tested;  ///< of Standing::not_tested, where the metric is tested at all
  bool best = false;           ///< significantly better than every other comparable row
  /// For a single value: the smallest difference from the baseline's mean that would be significant
  /// if the values scattered as those of the rows with several seeds.
  std::optional<double> noise;
};

/// A difference with a larger adjusted p is a tie.
constexpr double significance = 0.05;

/// Whether runs of the two can be paired by their seeds.
bool have_same_seeds(const AblationRow& a, const AblationRow& b);

/// How far the seeds of rows are, if rows are tested with each other whenever a run completes.
struct Look {
  /// The seeds that count: those that all rows have, where these are the planned ones or more,
  /// before every row has those, or where nobody planned. So a test sees each number of seeds once
  /// only, and what one row has beyond the others changes nothing, before them or behind. None:
  /// all.
  std::optional<std::set<int64_t>> seeds;
  double factor = 1;  ///< of p, see statistics::look_factor; 1 where there is nothing to test
  /// The seeds that all rows have are not the first ones of each: they may have been chosen when
  /// the others' results were known. Nothing is tested.
  bool is_chosen = false;
  bool is_beyond_plan = false;  ///< of seeds or runs that were added to those planned
};
Look look_at(const std::vector<const AblationRow*>& rows);

/// "the seeds that train_a and train_b have in common are not the first ones of each: train_b lacks
/// 9, 10, 11", of a look that is_chosen.
std::string why_chosen(const std::vector<const AblationRow*>& rows);

/// The rows of each comparison with the baseline; without such, each row by itself.
std::vector<std::vector<const AblationRow*>> comparisons_of(const Ablation& ablation);

/// Whether each of the row's runs has a finite value of the metric, or none has one. Of a row of
/// which a seed diverged fewer seeds say nothing: what remains is the better part.
bool is_finite(const AblationRow& row, const std::string& metric);

/// The row with its runs of these seeds alone.
AblationRow with_seeds(const AblationRow& row, const std::set<int64_t>& seeds);

/// What a metric's runs say of the difference of two rows.
struct RowDifference {
  statistics::Difference difference;  ///< its p is that of a single test
  double p = 1;                       ///< for all looks at the two rows together
  bool paired = false;
  size_t common_seeds = 0;  ///< see Cell
};

/// The difference of two rows' values of a metric, one a run: by the paired test if the rows have
/// the same seeds, else by Welch's, where seeds that only some runs share can make it less sure; of
/// fractions never surer than their numbers of cases allow. None if one has too few values, if
/// nothing varies though the rows differ, or less than the values are rounded by, if a value of
/// either row is not finite, whatever seeds are compared, and of a metric that is not tested.
std::optional<RowDifference> difference_between(const AblationRow& own_row,
                                                const AblationRow& other_row,
                                                const std::string& metric,
                                                double confidence = statistics::default_confidence);

/// Whether columns of the metric are tested where rows have several seeds. Parameters are the same
/// for every seed, and memory is, or changes with what the machine happens to do; a speed of `forge
/// bench` is one number.
bool is_tested_column(const std::string& metric, const TableSpec& table);

/// A metric of each row, in their order, compared with the baseline of the row's group. Nothing is
/// adjusted for other tests yet: the standing of what is tested is a tie.
std::vector<Cell> compared_cells(const Ablation& ablation, const std::string& metric);

/// Marks what the adjusted p of the cells say.
void settle(std::vector<Cell>& cells, const std::string& metric);

/// The cells of several metrics by name.
using CellsByMetric = std::map<std::string, std::vector<Cell>>;

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

/// Of two metrics.
struct ParetoFront {
  std::vector<ParetoPoint> points;   ///< sorted by the first metric, best first
  std::vector<std::string> missing;  ///< the other rows, each with its reason: "Canon-B (missing)"
};

/// Points are the comparable rows that have both metrics, for a timing those whose machine was
/// idle. Judged by means: a difference within noise counts as one.
ParetoFront pareto(const Ablation& ablation, const std::string& first, const std::string& second);

}  // namespace forge::tables
