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
  std::string row;  ///< whose runs they are: names of one row have one text here
  std::vector<SeededValue> values;
};

/// None or no values: no run has the metric.
using Samples = std::function<std::optional<MetricSample>(const Name&)>;

/// How the uncertainty of an expression was found.
enum class EstimateMethod {
  none,              ///< it was not: runs are too few
  paired_by_seed,    ///< evaluated for every seed, which all its rows have
  independent_rows,  ///< from the spread of each row by itself
};

/// An expression's value with what is known of its uncertainty.
struct Estimate {
  std::optional<double> value;
  EstimateMethod method = EstimateMethod::none;
  size_t runs = 0;  ///< the fewest that a metric is of
  std::optional<double> standard_error;
  std::optional<double> degrees_of_freedom;
  std::optional<statistics::Interval> interval;
  std::optional<double> p;  ///< two-sided, of the value being 0
  std::string missing;      ///< why there is no value or no interval; "" where there are both
};

/// Where all metrics are of the same seeds, the expression is evaluated for each, and value and
/// interval are those of Student's t for the mean of these: what runs of one seed have in common
/// cancels. Else it is evaluated at the means of the metrics, and its standard error follows from
/// theirs by its slopes (the delta method), with Welch's and Satterthwaite's degrees of freedom;
/// metrics of one row count as made by the same runs, rows as independent of each other.
///
/// Where a metric is of one run there is a value and no interval.
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

/// A claim holds, or fails, where the interval of its margin lies on one side: for 95 %, one in
/// forty claims whose sides are equal comes out either way by chance.
ClaimResult judge(const Comparison& comparison,
                  const Samples& samples,
                  double confidence = statistics::default_confidence);

/// What the names of an expression stand for in a row of a table: metrics of its runs, of those of
/// the baseline of its division, and of other rows of it. A row that breaks the comparison has none
/// but for itself, and none has a speed or a cost that was measured on another device than the
/// baseline's. A speed that was measured by `forge bench` is one value.
Samples samples_for(const Ablation& ablation, const AblationRow& row);

/// What the runs of a table say of one of its claims.
struct JudgedClaim {
  Verdict verdict = Verdict::not_decidable;
  std::string claim;         ///< "Canon-B has a lower eval loss than Llama"
  std::string reason;        ///< the measured value with its interval, or what is missing
  bool is_measured = false;  ///< `reason` is the measured value
};

/// A verdict on each claim of the table, in its order. A claim about another profile than the one
/// shown is not decidable; its reason says what the shown runs suggest.
///
/// A verdict takes several seeds. Against a number, the 95 % interval of the mean must lie on one
/// side of it. Against another row, the difference must be significant: p at most 0.05 in the
/// paired test if the seeds match, else in Welch's. Nothing is adjusted for several claims: each is
/// a question asked before the runs were made. For one seed the reason says what it suggests, for
/// an accuracy or validity with the sampling error of its cases. With best_of, every value must
/// have a completed run.
std::vector<JudgedClaim> judge_claims(const Ablation& ablation);

/// "not decidable: Canon-B has a lower eval loss than Llama (no run of canon_b)"
std::string verdict_line(const JudgedClaim& judged);

}  // namespace forge::tables
