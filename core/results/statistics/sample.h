#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace forge::statistics {

/// The confidence of intervals where nobody asks for another.
constexpr double default_confidence = 0.95;

struct Interval {
  double low = 0;
  double high = 0;

  /// Half of its length: how far it reaches to either side of its middle.
  double half_width() const { return (high - low) / 2; }
  bool contains(double value) const { return low <= value && value <= high; }
};

/// Mean and spread of at least one finite number.
struct Moments {
  size_t n = 0;
  double mean = 0;
  double standard_deviation = 0;  ///< with n − 1 below; 0 for one number

  double standard_error() const;  ///< of the mean
};

/// None for no numbers, where one is not finite, and where they are too far apart for a double.
/// Numbers that are all the same have exactly that mean and a standard deviation of exactly 0.
std::optional<Moments> moments_of(const std::vector<double>& values);

/// The value below which a fraction of the values lies, 0 to 1, by linear interpolation between two
/// of them (numpy's default); NaN for no values.
double quantile(std::vector<double> values, double fraction);

/// How an interval was found.
enum class IntervalMethod { student_t, bootstrap };
const char* name_of(IntervalMethod method);  ///< "Student t", "bootstrap"

/// From this sample size on the interval of a mean is a bootstrap's: resamples of fewer values vary
/// too little.
constexpr size_t bootstrap_min_n = 20;

/// What is known of the mean of something from a sample of it.
struct Summary {
  size_t n = 0;
  double mean = 0;                           ///< inf or NaN where a value is; NaN for none
  std::optional<double> standard_deviation;  ///< with n − 1 below; none for one value
  std::optional<double> standard_error;      ///< of the mean
  std::optional<Interval> interval;          ///< of the mean; none for one value
  IntervalMethod method = IntervalMethod::student_t;
};

/// The interval is Student's t below `bootstrap_min_n` values and a bootstrap's from there on
/// whose random numbers depend on `seed` alone; beyond `bootstrap_most_confidence` it contains
/// Student's t, too. Of fractions of `cases` cases, the same ones for all values, it reaches on
/// either side as far as the root of the squares of what it and exact_interval_of_fraction would
/// reach alone (G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693). Of values that are
/// not all finite only n is known. Throws Error for a confidence outside of 0 to 1 and for 65,536
/// values or more.
Summary summarize(const std::vector<double>& values,
                  uint64_t seed,
                  double confidence = default_confidence,
                  int64_t cases = 0);

/// The interval for the true fraction that holds at any number of independent cases, given the
/// fraction of `count` of them (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404); between
/// two numbers of right cases, as means over seeds are, the beta function goes on. All of 0 to 1
/// without cases.
Interval exact_interval_of_fraction(double fraction, int64_t count, double confidence);

/// The standard error of a fraction of `count` independent cases, of (fraction · count + 2) in
/// (count + 4) cases, so that it is not 0 where all cases or none were right. A. Agresti and
/// B. A. Coull, American Statistician 52 (1998) 119. 0 without cases.
double sampling_error_of_fraction(double fraction, int64_t count);

/// How far a mean may be off by the choice of what it is a mean of.
struct MeanError {
  double standard_error = 0;  ///< 0: not known; infinite: nothing says how far
  double degrees_of_freedom = std::numeric_limits<double>::infinity();
};

/// Of the weighted mean of a number of rows, by how their values differ (of a ratio
/// estimator: W. G. Cochran, Sampling Techniques, 3rd edition, section 6.4), with one degree of
/// freedom less than rows of equal weight that tell as much, at least 1 (L. Kish, Survey Sampling,
/// 1965, section 8.2). Infinite for one row, not known without rows. Both have one size; the
/// weights are not negative.
MeanError error_of_weighted_mean(const std::vector<double>& values,
                                 const std::vector<int64_t>& weights);

/// How two such means of the same rows vary together; the square of the error where both are one.
/// Infinite for one row, 0 without rows.
double covariance_of_weighted_means(const std::vector<double>& a,
                                    const std::vector<double>& b,
                                    const std::vector<int64_t>& weights);

/// Of a sum of quantities that are off independently of each other, with the fewest degrees of
/// freedom that any of them has.
MeanError joint_error(const std::vector<MeanError>& errors);

/// Wilson's 95 % score interval for the true fraction, given the fraction of `count` independent
/// cases: within [0, 1], all of it without cases. E. B. Wilson, JASA 22 (1927) 209.
Interval wilson_interval(double fraction, int64_t count);

/// The interval of a quantity, from its estimate and the estimate's standard error with its degrees
/// of freedom. Throws Error for a confidence outside of 0 to 1.
Interval student_t_interval(double estimate,
                            double standard_error,
                            double degrees_of_freedom,
                            double confidence = default_confidence);

// The distributions that the tests of this folder need.

/// P(|T| >= |t|) for Student's t with `degrees_of_freedom` > 0, exact far into the tail: the test's
/// two-sided p. 0 for an infinite t.
double student_t_two_sided_p(double t, double degrees_of_freedom);

/// P(|Z| >= |z|) for the standard normal distribution.
double normal_two_sided_p(double z);

/// The z with P(|Z| <= z) = confidence, for 0 < confidence < 1.
double normal_critical_value(double confidence);

/// The t with P(|T| <= t) = confidence, for 0 < confidence < 1: half the width of an interval in
/// standard errors.
double student_t_critical_value(double confidence, double degrees_of_freedom);

/// How far, in standard errors of its direction, the truth lies from the means in no direction of
/// so many dimensions: Hotelling's T. Student's t in one dimension; infinite where the degrees of
/// freedom are fewer than the dimensions.
double hotelling_critical_value(double confidence, int dimensions, double degrees_of_freedom);

/// The probability of at least that distance where the truth is at 0; 1 where nothing is known.
double hotelling_p(double t, int dimensions, double degrees_of_freedom);

/// Γ(m/2) / (√(m/2) Γ((m−1)/2)) for m > 1: by what a standardised difference is multiplied so that
/// a standard deviation of m degrees of freedom does not make it too large. L. V. Hedges,
/// J. Educational Statistics 6 (1981) 107, where it is c(m).
double hedges_correction(double degrees_of_freedom);

/// The coarsest power of ten, from 1 down to 1e-6, or of two, down to 1/8192, that all values are
/// multiples of: they were rounded to it. So are losses in nats, from 0 to 20, of which
/// the bits or the perplexities are such multiples; theirs is the step at their mean. 0 where there
/// is none.
double rounding_step(const std::vector<double>& values);

/// Whether several values vary less than rounding alone lets them, so that their spread says
/// nothing: the standard deviation of a difference of two rounded numbers is 1/√6 of a step.
bool is_hidden_by_rounding(const std::vector<double>& values);
/// The same for values that follow from others with this rounding_step.
bool is_hidden_by_rounding(const std::vector<double>& values, double step);

/// So often a sample is drawn anew. Another seed moves the ends of a 95 % interval by some 2 % of
/// its width; more resamples would cost tables of a thousand runs their speed.
constexpr int bootstrap_resamples = 2000;

/// Beyond this confidence fewer than ten resamples lie outside on either side and say little: there
/// an interval is never narrower than Student's t.
constexpr double bootstrap_most_confidence = 0.99;

/// Interval of the mean by the bias-corrected and accelerated bootstrap (B. Efron, JASA 82 (1987)
/// 171): skewed samples get skewed intervals. By itself it is too narrow for few values, holding
/// the mean in 92 % of samples of 20 for 95 %, so its ends are those of Student's t for normal
/// values (the expanded percentiles of T. C. Hesterberg, American Statistician 69 (2015) 371). The
/// resamples come from counter-based random numbers: the same values in the same order with the
/// same seed give the same interval. Equal values give one of width 0. Throws Error for fewer than
/// two values or one that is not finite, and for a confidence outside of 0 to 1.
Interval bootstrap_interval(const std::vector<double>& values,
                            uint64_t seed,
                            double confidence = default_confidence);

}  // namespace forge::statistics
