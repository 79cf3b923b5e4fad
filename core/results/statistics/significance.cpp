#include "core/results/statistics/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/results/statistics/sample.h"

namespace forge::statistics {
namespace {

std::optional<Moments> spread_of(const std::vector<double>& values) {
  const std::optional<Moments> moments = moments_of(values);
  return moments && moments->n > 1 ? moments : std::nullopt;
}

double degrees(const Moments& moments) { return static_cast<double>(moments.n - 1); }

/// Of a standard error made of two independent ones: Welch's and Satterthwaite's estimate
/// (Biometrics Bulletin 2 (1946) 110) for samples of one size. It is too high for samples of
/// unequal size if the smaller one varies more; their degrees of freedom are those of the smaller,
/// with which the test never errs too often (M. R. Mickey and M. B. Brown, Annals of Mathematical
/// Statistics 37 (1966) 639).
double joint_degrees(const Moments& own, const Moments& baseline, double standard_error) {
  if (own.n != baseline.n) return std::min(degrees(own), degrees(baseline));
  if (standard_error == 0) return degrees(own) + degrees(baseline);
  const double own_share = std::pow(own.standard_error() / standard_error, 4);
  const double other_share = std::pow(baseline.standard_error() / standard_error, 4);
  return 1 / (own_share / degrees(own) + other_share / degrees(baseline));
}

/// None where the standard deviation is 0 or has too few degrees of freedom for its inverse to have
/// a mean.
std::optional<double> hedges_g(double difference, double deviation, double degrees_of_freedom) {
  if (deviation == 0 || !(degrees_of_freedom > 1)) return std::nullopt;
  return difference / deviation * hedges_correction(degrees_of_freedom);
}

/// What r² of more than two pairs says of the squared correlation: less than itself, since it is
/// never 0 by chance (M. Ezekiel's adjusted r²).
double squared_correlation(const std::vector<double>& a,
                           const Moments& of_a,
                           const std::vector<double>& b,
                           const Moments& of_b) {
  if (of_a.standard_deviation == 0 || of_b.standard_deviation == 0) return 0;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - of_a.mean) / of_a.standard_deviation *
           ((b[i] - of_b.mean) / of_b.standard_deviation);
  const double r = std::min(1.0, std::fabs(sum / degrees(of_a)));
  return std::max(0.0, 1 - (1 - r * r) * degrees(of_a) / (degrees(of_a) - 1));
}

/// An estimate with independent errors besides that over the seeds: of the cases of a fraction, and
/// of the rows of text, with degrees of freedom of their own. The interval reaches as far as the
/// root of the squares of what each alone would reach (W. G. Howe, JASA 69 (1974) 789; G. Y. Zou
/// and A. Donner, Statistics in Medicine 27 (2008) 1693), so that no error ever makes it narrower,
/// as more degrees of freedom would. p follows from where it ends at 0.
Difference with_several_errors(double estimate,
                               double standard_error,
                               double degrees_of_freedom,
                               double sampling_error,
                               const MeanError& of_rows,
                               double confidence) {
  const auto reach = [&](double error) {
    const double of_seeds =
        student_t_critical_value(1 - error, degrees_of_freedom) * standard_error;
    const double of_cases =
        sampling_error > 0 ? normal_critical_value(1 - error) * sampling_error : 0;
    const double of_text = of_rows.standard_error > 0
                               ? student_t_critical_value(1 - error, of_rows.degrees_of_freedom) *
                                     of_rows.standard_error
                               : 0;
    return std::hypot(of_seeds, of_cases, of_text);
  };
  Difference result;
  result.difference = estimate;
  result.standard_error = std::hypot(standard_error, sampling_error, of_rows.standard_error);
  result.degrees_of_freedom = degrees_of_freedom;
  result.t = estimate / result.standard_error;
  const double half = reach(1 - confidence);
  result.interval = {estimate - half, estimate + half};
  constexpr double smallest = 1e-14, largest = 1 - 1e-9;
  double low = std::log(smallest), high = std::log(largest);
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (reach(std::exp(middle)) > std::fabs(estimate) ? low : high) = middle;
  }
  result.p = estimate == 0 ? 1 : std::exp(high);
  return result;
}

}  // namespace

std::optional<Difference> student_t_test(double estimate,
                                         double standard_error,
                                         double degrees_of_freedom,
                                         double confidence,
                                         double sampling_error,
                                         const MeanError& evaluation_error) {
  if (standard_error == 0 && sampling_error == 0) return std::nullopt;
  if (std::isinf(evaluation_error.standard_error)) return std::nullopt;
  if (standard_error > 0 && (evaluation_error.standard_error > 0 || sampling_error > 0))
    return with_several_errors(
        estimate, standard_error, degrees_of_freedom, sampling_error, evaluation_error, confidence);
  Difference result;
  result.difference = estimate;
  result.standard_error = standard_error;
  result.degrees_of_freedom = degrees_of_freedom;
  result.interval = student_t_interval(estimate, standard_error, degrees_of_freedom, confidence);
  if (standard_error == 0) {
    const double reach = normal_critical_value(confidence) * sampling_error;
    result.interval = {estimate - reach, estimate + reach};
  }
  if (estimate == 0) return result;
  result.t = standard_error == 0 ? std::copysign(std::numeric_limits<double>::infinity(), estimate)
                                 : estimate / standard_error;
  result.p = student_t_two_sided_p(result.t, degrees_of_freedom);
  if (sampling_error > 0)
    result.p = std::max(result.p, normal_two_sided_p(estimate / sampling_error));
  return result;
}

std::optional<Difference> welch_test(const std::vector<double>& own,
                                     const std::vector<double>& baseline,
                                     double confidence,
                                     double sampling_error,
                                     const MeanError& evaluation_error,
                                     double covariance) {
  const std::optional<Moments> a = spread_of(own);
  const std::optional<Moments> b = spread_of(baseline);
  if (!a || !b) return std::nullopt;
  const double difference = a->mean - b->mean;
  const double independent = std::hypot(a->standard_error(), b->standard_error());
  const double standard_error = std::hypot(independent, std::sqrt(std::max(0.0, -2 * covariance)));
  const double degrees_of_freedom =
      covariance < 0 ? std::min(degrees(*a), degrees(*b)) : joint_degrees(*a, *b, independent);
  std::optional<Difference> result = student_t_test(
      difference, standard_error, degrees_of_freedom, confidence, sampling_error, evaluation_error);
  if (!result) return std::nullopt;
  const double both = degrees(*a) + degrees(*b);
  const double differ_within_cells =
      std::hypot(a->standard_deviation * std::sqrt(degrees(*a) / both),
                 b->standard_deviation * std::sqrt(degrees(*b) / both));
  result->effect_size = hedges_g(difference, differ_within_cells, both);
  return result;
}

std::optional<Difference> paired_test(const std::vector<double>& own,
                                      const std::vector<double>& baseline,
                                      double confidence,
                                      double sampling_error,
                                      const MeanError& evaluation_error) {
  if (own.size() != baseline.size())
    throw Error("pairs need samples of one size, not of " + std::to_string(own.size()) + " and " +
                std::to_string(baseline.size()) + " values");
  std::vector<double> differences;
  differences.reserve(own.size());
  for (size_t i = 0; i < own.size(); ++i) differences.push_back(own[i] - baseline[i]);
  std::optional<Difference> result =
      one_sample_test(differences, 0, confidence, sampling_error, evaluation_error);
  const std::optional<Moments> a = spread_of(own);
  const std::optional<Moments> b = spread_of(baseline);
  if (!result || !a || !b) return std::nullopt;
  if (own.size() < 3)
    return result;  // two pairs correlate fully, which leaves one degree of freedom
  const double deviation =
      std::hypot(a->standard_deviation, b->standard_deviation) / std::sqrt(2.0);
  const double freedom = 2 * degrees(*a) / (1 + squared_correlation(own, *a, baseline, *b));
  result->effect_size = hedges_g(result->difference, deviation, freedom);
  return result;
}

std::optional<Difference> one_sample_test(const std::vector<double>& values,
                                          double reference,
                                          double confidence,
                                          double sampling_error,
                                          const MeanError& evaluation_error) {
  const std::optional<Moments> moments = spread_of(values);
  if (!moments || !std::isfinite(reference)) return std::nullopt;
  const double difference = moments->mean - reference;
  std::optional<Difference> result = student_t_test(difference,
                                                    moments->standard_error(),
                                                    degrees(*moments),
                                                    confidence,
                                                    sampling_error,
                                                    evaluation_error);
  if (result)
    result->effect_size = hedges_g(difference, moments->standard_deviation, degrees(*moments));
  return result;
}

std::vector<std::optional<double>> weighted_holm_adjusted(const std::vector<WeightedTest>& tests) {
  std::vector<size_t> tested;
  double remaining = 0;
  for (size_t i = 0; i < tests.size(); ++i) {
    const auto& [p, weight] = tests[i];
    if (!p || std::isnan(*p)) continue;
    if (*p < 0 || *p > 1) throw Error("a p lies in 0 to 1, " + shortest(*p) + " does not");
    if (!(weight > 0)) throw Error("a test's weight is above 0, " + shortest(weight) + " is not");
    tested.push_back(i);
    remaining += weight;
  }
  const auto rank = [&](size_t i) { return *tests[i].p / tests[i].weight; };
  std::stable_sort(
      tested.begin(), tested.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });

  // Each is multiplied by the weights of itself and of those behind it; none may fall below one
  // before it.
  std::vector<std::optional<double>> adjusted(tests.size());
  double floor = 0;
  for (const size_t i : tested) {
    floor = std::max(floor, std::min(1.0, remaining * rank(i)));
    adjusted[i] = floor;
    remaining -= tests[i].weight;
  }
  return adjusted;
}

std::vector<std::optional<double>> holm_adjusted(const std::vector<std::optional<double>>& p) {
  std::vector<WeightedTest> tests;
  for (const std::optional<double>& each : p) tests.push_back({each});
  return weighted_holm_adjusted(tests);
}

double look_factor(size_t seeds, size_t planned) {
  constexpr double at_plan = 0.9, before_plan = 0.025, after_plan = 0.025, without_plan = 0.95;
  const auto n = static_cast<double>(seeds), wanted = static_cast<double>(planned);
  if (planned < 2) return n * (n - 1) / without_plan;
  if (seeds == planned) return 1 / at_plan;
  if (seeds < planned) return (wanted - 2) / before_plan;
  return (n - wanted) * (n - wanted + 1) / after_plan;
}

double set_factor(size_t number) {
  constexpr double after_first = 0.05;
  const auto k = static_cast<double>(number);
  return number < 2 ? 1 : k * (k - 1) / after_first;
}

}  // namespace forge::statistics
