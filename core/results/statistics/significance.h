#pragma once

#include <optional>
#include <vector>

#include "core/results/statistics/sample.h"

namespace forge::statistics {

/// What two samples say of the difference of their means, or one of how far its mean is from a
/// number.
struct Difference {
  double difference = 0;      ///< own mean − the baseline's
  double standard_error = 0;  ///< of the difference
  double degrees_of_freedom = 0;
  double t = 0;       ///< difference ÷ standard error; ±infinity if only the cases vary
  double p = 1;       ///< two-sided: how often chance alone is as far off
  Interval interval;  ///< of the difference
  /// Hedges' g: the difference in standard deviations. None where nothing varies or too few values
  /// say how much.
  std::optional<double> effect_size;
};

/// Welch's test, which lets the two samples vary differently (B. L. Welch, Biometrika 34 (1947)
/// 28). Of samples of unequal size the degrees of freedom are those of the smaller one: Welch's own
/// let 10 % of equal rows of 2 and 10 runs differ (M. R. Mickey and M. B. Brown, Annals of
/// Mathematical Statistics 37 (1966) 639). The effect size is (own − baseline) / s · c(m) with the
/// pooled standard deviation s of m = n₁ + n₂ − 2 degrees of freedom and Hedges' correction c
/// (sample.h).
///
/// `sampling_error` is the standard error that the difference has because only so many cases were
/// evaluated, 0 where that is not known, and `evaluation_error` the same for the rows of text.
/// All seeds evaluate the same cases and rows: what the seeds vary by does not contain them. The
/// interval reaches as far as the root of the squares of what each error alone would reach.
///
/// None where a sample has fewer than two values, which tell nothing about their spread, or one
/// that is not finite. None, too, where neither sample varies and no sampling error is known:
/// nothing says how far chance moves the means. None, too, for an infinite evaluation error. Throws
/// Error for a confidence outside of 0 to 1.
///
/// `covariance` is that of the two means, where some values of the samples belong together: runs of
/// seeds that both rows have. Below 0 it is part of the error, with the degrees of freedom of the
/// smaller sample. Above 0, where it would make the test surer, it is not counted.
std::optional<Difference> welch_test(const std::vector<double>& own,
                                     const std::vector<double>& baseline,
                                     double confidence = default_confidence,
                                     double sampling_error = 0,
                                     const MeanError& evaluation_error = {},
                                     double covariance = 0);

/// Student's test on the differences of pairs, such as runs of the same seed: own[i] belongs to
/// baseline[i]. The effect size is standardised by what the samples vary, not by what the
/// differences vary, so that it compares with that of welch_test: s² is the mean of both variances,
/// of m = 2 (n − 1) / (1 + ρ²) degrees of freedom for a correlation ρ (D. Cousineau and
/// J.-C. Goulet-Pelletier, Quantitative Methods for Psychology 17 (2021) 51), with the adjusted r²
/// of the pairs, 1 − (1 − r²)(n − 1)/(n − 2) but not below 0, for ρ². None for two pairs, which
/// always have r = ±1.
///
/// Degenerate samples as in welch_test, with n − 1 degrees of freedom. Throws Error for samples of
/// different sizes.
std::optional<Difference> paired_test(const std::vector<double>& own,
                                      const std::vector<double>& baseline,
                                      double confidence = default_confidence,
                                      double sampling_error = 0,
                                      const MeanError& evaluation_error = {});

/// Student's test of whether the mean of `values` is `reference`; `difference` is how far it is
/// off. The effect size is standardised by the standard deviation of the values, of n − 1 degrees
/// of freedom. Degenerate samples as in paired_test.
std::optional<Difference> one_sample_test(const std::vector<double>& values,
                                          double reference,
                                          double confidence = default_confidence,
                                          double sampling_error = 0,
                                          const MeanError& evaluation_error = {});

/// Tests whether a quantity is 0, from its estimate and the estimate's standard error with its
/// degrees of freedom. Without an effect size. None for an estimate without any error.
std::optional<Difference> student_t_test(double estimate,
                                         double standard_error,
                                         double degrees_of_freedom,
                                         double confidence = default_confidence,
                                         double sampling_error = 0,
                                         const MeanError& evaluation_error = {});

/// One of several tests that are judged together.
struct WeightedTest {
  std::optional<double> p;  ///< none or NaN: not tested
  double weight = 1;        ///< its share of the error that is allowed, relative to the others'
};

/// The p of several tests, adjusted for their number by Holm's step-down procedure with weights
/// (S. Holm, Scandinavian J. Statistics 6 (1979) 65), in the order given: who calls those real that
/// are at most 0.05 errs in any of them in at most 5 % of cases, however the tests depend on each
/// other. A test is multiplied by the weight of all that are not smaller than it, over its own,
/// where p / weight decides what is smaller. What was not tested stays none and does not count.
/// Throws Error for a p outside of 0 to 1 and a weight that is not above 0.
std::vector<std::optional<double>> weighted_holm_adjusted(const std::vector<WeightedTest>& tests);
/// The same with equal weights.
std::vector<std::optional<double>> holm_adjusted(const std::vector<std::optional<double>>& p);

/// By what the p of a test is multiplied because it is made again whenever another seed completes:
/// who calls real what is then at most 0.05 errs in less than 5 % of cases at any of these looks,
/// by adding up what each may err (Bonferroni). With a number of seeds planned beforehand nearly
/// all of it, 4.5 %, is for the look at that number; 0.125 % are for all looks before it together,
/// as much for all after it (after J. L. Haybittle, British J. Radiology 44 (1971) 793), and 0.25 %
/// are left for set_factor. Without a plan (`planned` below 2) the look at n seeds may err in 4.75
/// % / (n (n − 1)), the sum of which over all n from 2 on is 4.75 %. `seeds` is at least 2.
double look_factor(size_t seeds, size_t planned);

/// By what the p of a test on the `number`-th of several sets of runs is multiplied besides,
/// because another set may be made until one says something: 1 for the first one, so that it loses
/// nothing, and k (k − 1) / 0.05 for the k-th. All sets together err in as much as look_factor
/// leaves, for the sum of 1 / (k (k − 1)) over all k from 2 on is 1 (such shares of one error among
/// tests that come one after another: D. P. Foster and R. A. Stine, J. Royal Statistical Society B
/// 70 (2008) 429).
double set_factor(size_t number);

}  // namespace forge::statistics
