#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/report/expression.h"
#include "core/statistics/sample.h"

/// What the runs of several seeds say of an expression over their figures.
namespace forge::report {

/// A figure of one run.
struct SeededValue {
  int64_t seed = 0;
  double value = 0;
};

/// A figure of a row's runs, one a seed.
struct FigureSample {
  std::string row;  ///< whose runs they are: names of one row have one text here
  std::vector<SeededValue> values;
};

/// None or no values: no run has the figure.
using Samples = std::function<std::optional<FigureSample>(const Name&)>;

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
  size_t runs = 0;  ///< the fewest that a figure is of
  std::optional<double> standard_error;
  std::optional<double> degrees_of_freedom;
  std::optional<statistics::Interval> interval;
  std::optional<double> p;  ///< two-sided, of the value being 0
  std::string lacking;      ///< why there is no value or no interval; "" where there are both
};

/// Where all figures are of the same seeds, the expression is evaluated for each, and value and
/// interval are those of Student's t for the mean of these: what runs of one seed have in common
/// cancels. Else it is evaluated at the means of the figures, and its standard error follows from
/// theirs by its slopes (the delta method), with Welch's and Satterthwaite's degrees of freedom;
/// figures of one row count as made by the same runs, rows as independent of each other.
///
/// Where a figure is of one run there is a value and no interval.
Estimate estimate(const Expression& expression,
                  const Samples& samples,
                  double confidence = statistics::usual_confidence);

enum class Judgement { holds, fails, not_decidable };
const char* name_of(Judgement judgement);  ///< "holds", "fails", "not decidable"

struct Judged {
  Judgement judgement = Judgement::not_decidable;
  std::string reason;  ///< why not decidable, else ""
  Estimate left;
  Estimate right;
  Estimate margin;  ///< left − right
};

/// A claim holds, or fails, where the interval of its margin lies on one side: for 95 %, one in
/// forty claims whose sides are equal comes out either way by chance.
Judged judge(const Comparison& comparison,
             const Samples& samples,
             double confidence = statistics::usual_confidence);

}  // namespace forge::report
