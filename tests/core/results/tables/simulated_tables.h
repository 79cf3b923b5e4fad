#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/verdicts.h"

/// Tables of runs of which the truth is known: how often they err, and how often they find what is
/// there.
namespace forge::tables::simulated {

double normal(RandomStream& random);

/// How the losses of a row's seeds lie around their mean.
enum class Noise {
  normal,
  heavy,     ///< Student's t with 3 degrees of freedom
  outliers,  ///< one in ten scatters five times as far
  skewed,    ///< lognormal, σ = 1
};

/// By how much each evaluated row of text favours a model, 0 in the mean over all text.
using RowEffects = std::function<std::vector<double>(RandomStream&)>;

/// A table that grows by a seed in every row at a time.
struct Scenario {
  int rows = 4;           ///< beside the baseline
  int columns = 1;        ///< losses, with half of what the seeds do not share in common
  int claims = 0;         ///< that a row is below the baseline, or another row
  size_t seeds = 5;       ///< at the last look
  size_t planned = 5;     ///< 0: not planned
  size_t first_look = 5;  ///< number of seeds at which one begins to look
  /// The share of a loss's variance that is the seed's. Below 0: of opposite sign in every other
  /// row.
  double shared = 0.5;
  size_t apart = 0;   ///< by how many seeds each row begins later than the one before it
  size_t few = 0;     ///< seeds of every other row, planned so; 0: as many as the others
  double effect = 0;  ///< by which the last row is lower
  Noise noise = Noise::normal;
  double spread = 1;            ///< standard deviation of what a seed changes in one row alone
  double step = 0;              ///< to whose multiples losses are rounded
  int limits = 0;               ///< claims that a row's loss is at most what it is
  int expressions = 0;          ///< claims about exponentials of losses
  RowEffects row_effects = {};  ///< none: endless many rows are evaluated
  bool knows_rows = true;       ///< whether the losses of these rows are reported
};

/// A row of these losses, of seeds from 1 on.
AblationRow row_of(const std::string& config, const std::vector<double>& losses, size_t planned);

/// The first row is the baseline; the table has a column of eval_loss.
Ablation table_of(const std::vector<AblationRow>& rows);

struct Outcome {
  bool wrong = false;  ///< the table calls anything real that is not, at one of the looks
  bool found = false;  ///< at the last look the last row is better by the primary metric
};
/// `with_history`: adds what else was run of the table's configs.
Outcome outcome_of(const Scenario& scenario,
                   RandomStream& random,
                   const std::function<void(Ablation&)>& with_history = {});

/// Shares of so many tables.
struct Rates {
  double wrong = 0;
  double found = 0;
};
Rates rates_of(const Scenario& scenario, int tables, const std::string& name);

/// What a share of so many must not exceed where 5 % is promised: three standard errors above it.
double most_of(int tables);

/// "3.8 %"
std::string percent(double share);

}  // namespace forge::tables::simulated
