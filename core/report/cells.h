#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/ablation.h"
#include "core/statistics/difference.h"
#include "core/statistics/sample.h"

namespace forge::report {

/// What a row's figure says against the baseline's.
enum class Standing {
  baseline,  ///< it is the baseline's
  better,    ///< the difference stands: adjusted p at most 0.05
  worse,
  tie,        ///< the difference is within noise
  one_seed,   ///< one value on either side: nothing tells a difference from noise
  not_alike,  ///< of a row that breaks the comparison, or where the baseline has no figure
};

/// "baseline", "better", "worse", "tie", "one seed", "not alike"
const char* name_of(Standing standing);

/// A figure of a row over its seeds.
struct Cell {
  std::vector<double> values;                        ///< one a seed, in the order of the row's runs
  statistics::Summary summary;                       ///< of them; n = 0 where the row has none
  std::optional<statistics::Difference> difference;  ///< own − the baseline's
  bool paired = false;                               ///< the seeds are the baseline's
  std::optional<double> p;                           ///< of the difference, by Holm over the rows
  Standing standing = Standing::not_alike;
  /// Better than every other comparable row's, each difference standing (Holm over the others).
  bool best = false;
  /// Of one value where other rows tell how seeds scatter: how far it may be from the baseline's
  /// mean by chance alone, in 95 % of cases.
  std::optional<double> noise;
};

/// The smallest chance that is called one: differences whose adjusted p is larger are ties.
constexpr double significance = 0.05;

/// Whether runs of the two can be paired by their seeds.
bool have_the_same_seeds(const AblationRow& a, const AblationRow& b);

/// What two rows' values of a figure, one a run, say of their difference: by the paired test where
/// the rows have the same seeds, else by Welch's. None where one has too few.
std::optional<statistics::Difference> difference_between(const AblationRow& own_row,
                                                         const std::vector<double>& own,
                                                         const AblationRow& other_row,
                                                         const std::vector<double>& other);

/// The figure of that name (scores.h) of each row, in their order. Rows are compared with the
/// baseline of their division by the paired test where both have the same seeds, else by Welch's.
std::vector<Cell> cells_of(const Ablation& ablation, const std::string& figure);

}  // namespace forge::report
