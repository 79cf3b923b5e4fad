#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/results/statistics/sample.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/expression.h"

/// What the runs of several seeds say of an expression over their metrics.
namespace forge::tables {

/// A metric of one run.
struct SeededValue {
  int64_t seed = 0;
  double value = 0;
};

/// A metric of a row's runs, one a seed.
struct MetricSample {
  std::string row;  ///< names the row: metrics of one row come from the same runs
  std::vector<SeededValue> values;
  double sampling_error = 0;  ///< of a fraction, by its number of cases (sampling_error_of)
  store::EvaluationRows evaluation_rows = {};  ///< of a loss, if they are known
  int64_t cases = 0;  ///< independent ones of a fraction (cases_of); 0: not known
};

/// The sample of a name. None or empty: no run has the metric.
using Samples = std::function<std::optional<MetricSample>(const Name&)>;

/// Of values that are not all finite, what that says of the row: "a diverged in 1 of 3 runs: its
/// eval_loss is inf or NaN". "" if all are.
std::string not_finite_text(const std::string& row,
                            const std::string& metric,
                            const std::vector<double>& values);

/// How the uncertainty of an expression was found.
enum class EstimateMethod {
  none,              ///< not found: too few runs
  paired_by_seed,    ///< from how the metrics vary together; all rows have the same seeds
  independent_rows,  ///< from the spread of each row
};

/// An expression's value and its uncertainty.
struct Estimate {
  std::optional<double> value;
  EstimateMethod method = EstimateMethod::none;
  size_t runs = 0;  ///< of the metric with the fewest
  std::optional<double> standard_error;
  std::optional<double> degrees_of_freedom;
  std::optional<statistics::Interval> interval;
  std::optional<double> p;  ///< two-sided, of the value being 0
  std::string missing;      ///< why there is no value or no interval; "" with both
};

/// The value is that at the means of the metrics. The interval is the range of the expression over
/// all means that Student's t leaves possible: within the ellipsoid around them whose extent in any
/// direction is the interval of that sum of metrics. So it is Student's where the expression is
/// straight, its ends put into the function where it is a function of one sum (a logarithm of a
/// loss), and Fieller's for a ratio (E. C. Fieller, J. R. Stat. Soc. B 16 (1954) 175). Where the
/// expression turns within the ellipsoid, or has a pole or no value there, there is none.
///
/// If all metrics have the same seeds, they vary together, so what runs of one seed have in common
/// cancels. Otherwise those of one row do, rows are independent, and the degrees of freedom are
/// Welch's and Satterthwaite's; standard error, t and p follow from the slopes at the means. A
/// metric with one run gives a value without
/// an interval, and so does an expression that no seed changes. A minimum is that of the means, not
/// the mean of minima, which chance makes smaller; its interval follows from intervals of what it
/// is the minimum of, which hold all at once (Bonferroni). The same goes for maxima and absolute
/// values. Metrics of the model alone, such as
/// its parameters, are exact. The interval contains, besides what the seeds vary, the error of the
/// numbers of cases that fractions were evaluated on, where one row may be right on the cases that
/// another is wrong on, and of losses that of evaluating on a limited number of rows, where all
/// have the same rows.
Estimate estimate(const Expression& expression,
                  const Samples& samples,
                  double confidence = statistics::default_confidence);

/// What runs say of a claim. Not decidable: some are missing, or they leave it open.
enum class Verdict { not_decidable, holds, fails };
const char* name_of(Verdict verdict);  ///< "not decidable", "holds", "fails"

struct ClaimResult {
  Verdict verdict = Verdict::not_decidable;
  std::string reason;  ///< why not decidable, else ""
  Estimate left;
  Estimate right;
  Estimate margin;  ///< left − right
};

/// A claim holds, or fails, if the interval of its margin lies on one side. At 95 %, a claim with
/// equal sides holds by chance once in forty times, and fails as often.
ClaimResult judge(const Comparison& comparison,
                  const Samples& samples,
                  double confidence = statistics::default_confidence);

/// The metrics that an expression's names stand for in a row: those of its own runs, of the
/// baseline of its group, and of other rows of that group. A row that is not comparable has metrics
/// only for itself. A speed measured by `forge bench` is one value. Whether they were measured
/// alike is not asked here (comparable_metrics.h).
Samples samples_for(const Ablation& ablation, const AblationRow& row);

/// What a derived column shows of a row: nothing where a metric was not measured like the
/// baseline's, beside whose cell it stands.
Estimate derived_value(const ColumnSpec& column, const AblationRow& row, const Ablation& ablation);

}  // namespace forge::tables
