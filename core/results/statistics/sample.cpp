#include "core/results/statistics/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"

// The one file that includes Boost.Math, which takes its time to compile.
namespace forge::statistics {
namespace {

namespace policies = boost::math::policies;
// Double throughout: what `long double` is differs between machines.
using Policy = policies::policy<policies::promote_double<false>,
                                policies::overflow_error<policies::ignore_error>,
                                policies::underflow_error<policies::ignore_error>>;
using StudentT = boost::math::students_t_distribution<double, Policy>;

}  // namespace

double student_t_two_sided_p(double t, double degrees_of_freedom) {
  if (std::isinf(t)) return 0;
  // By the incomplete beta function, in each part by the argument that has all its digits.
  const double square = t * t;
  const double half = degrees_of_freedom / 2;
  const double within = square / (degrees_of_freedom + square);
  if (square < 1) return 1 - boost::math::ibeta(0.5, half, within, Policy());
  if (square < degrees_of_freedom) return boost::math::ibetac(0.5, half, within, Policy());
  return boost::math::ibeta(half, 0.5, 1 / (1 + square / degrees_of_freedom), Policy());
}

double normal_two_sided_p(double z) { return std::erfc(std::fabs(z) / std::sqrt(2.0)); }

double student_t_critical_value(double confidence, double degrees_of_freedom) {
  const double tail = (1 - confidence) / 2;
  return boost::math::quantile(boost::math::complement(StudentT(degrees_of_freedom), tail));
}

double hotelling_p(double t, int dimensions, double degrees_of_freedom) {
  if (dimensions <= 1) return student_t_two_sided_p(t, degrees_of_freedom);
  // T² of k dimensions is k ν / (ν − k + 1) times an F of k and ν − k + 1 (Hotelling 1931).
  const double k = dimensions, rest = degrees_of_freedom - k + 1;
  if (!(rest > 0)) return 1;
  return boost::math::ibeta(
      rest / 2, k / 2, degrees_of_freedom / (degrees_of_freedom + t * t), Policy());
}

double hotelling_critical_value(double confidence, int dimensions, double degrees_of_freedom) {
  if (dimensions <= 1) return student_t_critical_value(confidence, degrees_of_freedom);
  // Halved until nothing lies between: Boost's inverse of the beta function gives up at an F of 4
  // and 1 and tails below 1e-8.
  const double tail = 1 - confidence;
  const auto is_below = [&](double t) {
    return hotelling_p(t, dimensions, degrees_of_freedom) > tail;
  };
  double low = 0, high = 1;
  while (std::isfinite(high) && is_below(high)) {
    low = high;
    high *= 2;
  }
  if (std::isinf(high)) return high;
  for (double middle = (low + high) / 2; low < middle && middle < high; middle = (low + high) / 2)
    (is_below(middle) ? low : high) = middle;
  return high;
}

double hedges_correction(double degrees_of_freedom) {
  const double half = degrees_of_freedom / 2;
  return boost::math::tgamma_delta_ratio(half, -0.5, Policy()) / std::sqrt(half);
}

namespace {

/// Deviations from the mean: sums of them keep the digits that sums of the values would lose. The
/// mean is rounded, so what is left of it is taken off as well.
std::vector<double> deviations(const std::vector<double>& values, double mean) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(value - mean);
  const std::optional<Moments> rest = moments_of(result);
  for (double& deviation : result) deviation -= rest ? rest->mean : 0;
  return result;
}

/// Uniform numbers below `count` without bias (D. Lemire's multiply-and-reject), two of each random
/// word: making these is most of the work.
class Draws {
 public:
  Draws(size_t count, uint64_t seed)
      : random_(seed, stream_number("bootstrap")),
        count_(static_cast<uint32_t>(count)),
        rejected_below_(halves % count_) {}

  size_t next() {
    while (true) {
      word_ = first_half_ ? random_.next_u32() : word_ >> 16;
      first_half_ = !first_half_;
      const uint32_t product = word_ % halves * count_;
      if (product % halves >= rejected_below_) return product / halves;
    }
  }

  static constexpr uint32_t halves = 0x10000;  ///< values that half a word has

 private:
  RandomStream random_;
  uint32_t count_;
  uint32_t rejected_below_;
  uint32_t word_ = 0;
  bool first_half_ = true;
};

/// Means of the resamples.
std::vector<double> resampled_means(const std::vector<double>& values, uint64_t seed) {
  Draws draws(values.size(), seed);
  const auto n = static_cast<double>(values.size());
  std::vector<double> means(bootstrap_resamples);
  for (double& mean : means) {
    double sum = 0;
    for (size_t k = 0; k < values.size(); ++k) sum += values[draws.next()];
    mean = sum / n;
  }
  return means;
}

/// The place of the estimate, which is 0, among the means of the resamples, as a normal quantile:
/// what the bootstrap is off to one side. Those that equal it but for rounding count half.
double bias(const std::vector<double>& means, double standard_deviation) {
  const double rounding = 1e-12 * standard_deviation;
  double below = 0;
  for (const double mean : means) below += mean < -rounding ? 1 : mean <= rounding ? 0.5 : 0;
  const double count = static_cast<double>(means.size());
  return normal_quantile(std::clamp(below / count, 0.5 / count, 1 - 0.5 / count));
}

/// A sixth of the skewness of the mean, from leaving out one value at a time: how fast its standard
/// error changes with it.
double acceleration(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  double squares = 0;
  double cubes = 0;
  for (const double value : values) {
    const double scaled = value / largest;
    squares += scaled * scaled;
    cubes += scaled * scaled * scaled;
  }
  return cubes / (6 * squares * std::sqrt(squares));
}

/// The fraction of the resamples below an end of the interval. Without bias and skew that end lies
/// `errors` standard errors from the middle.
double share_below(double errors, double bias, double acceleration) {
  const double shifted = bias + errors;
  const double scale = 1 - acceleration * shifted;
  if (scale <= 0) return shifted < 0 ? 0 : 1;  // a skewness that no finite quantile answers
  return normal_cdf(bias + shifted / scale);
}

}  // namespace

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return std::nan("");
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), nth, values.end());
  if (nth + 1 == values.end()) return *nth;
  return *nth + (place - std::floor(place)) * (*std::min_element(nth + 1, values.end()) - *nth);
}

Interval bootstrap_interval(const std::vector<double>& values, uint64_t seed, double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw Error("a confidence lies between 0 and 1, " + shortest(confidence) + " does not");
  const std::optional<Moments> moments = moments_of(values);
  if (!moments || moments->n < 2)
    throw Error("a bootstrap needs at least two values, all of them finite");
  if (moments->n >= Draws::halves)
    throw Error("a bootstrap takes less than 65,536 values, not " + std::to_string(moments->n));
  const double mean = moments->mean;
  if (moments->standard_deviation == 0) return {mean, mean};
  const std::vector<double> centred = deviations(values, mean);
  const std::vector<double> means = resampled_means(centred, seed);
  const double off = bias(means, moments->standard_deviation);
  const double skew = acceleration(centred);
  // Resamples vary like the sample with n below, not n − 1, and know nothing of its few values.
  const auto n = static_cast<double>(moments->n);
  const double errors = std::sqrt(n / (n - 1)) * student_t_critical_value(confidence, n - 1);
  return {mean + quantile(means, share_below(-errors, off, skew)),
          mean + quantile(means, share_below(errors, off, skew))};
}

namespace {

/// Neumaier's compensated sum: its error does not grow with the number of terms.
class Sum {
 public:
  void add(double term) {
    const double next = total_ + term;
    compensation_ +=
        std::fabs(total_) >= std::fabs(term) ? (total_ - next) + term : (term - next) + total_;
    total_ = next;
  }
  double value() const { return total_ + compensation_; }

 private:
  double total_ = 0;
  double compensation_ = 0;
};

/// Mean of the deviations from `origin`.
double mean_deviation(const std::vector<double>& values, double origin) {
  Sum sum;
  for (const double value : values) sum.add(value - origin);
  return sum.value() / static_cast<double>(values.size());
}

double standard_deviation(const std::vector<double>& values, double mean) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value - mean));
  if (largest == 0) return 0;
  // In units of the largest deviation: squares neither overflow nor vanish.
  Sum squares;
  for (const double value : values) {
    const double deviation = (value - mean) / largest;
    squares.add(deviation * deviation);
  }
  // The mean is rounded; what that adds to the squares is taken off again.
  const double n = static_cast<double>(values.size());
  const double rest = mean_deviation(values, mean) / largest;
  const double variance = std::max(0.0, squares.value() - n * rest * rest) / (n - 1);
  return largest * std::sqrt(variance);
}

}  // namespace

double Moments::standard_error() const {
  return standard_deviation / std::sqrt(static_cast<double>(n));
}

std::optional<Moments> moments_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  // From the first value on, so that equal values have no spread, and once more from there.
  double mean = values.front() + mean_deviation(values, values.front());
  mean += mean_deviation(values, mean);
  Moments moments{values.size(), mean, 0};
  if (values.size() > 1) moments.standard_deviation = standard_deviation(values, mean);
  if (!std::isfinite(mean) || !std::isfinite(moments.standard_deviation)) return std::nullopt;
  return moments;
}

const char* name_of(IntervalMethod method) {
  return method == IntervalMethod::student_t ? "Student t" : "bootstrap";
}

Interval wilson_interval(double fraction, int64_t count) {
  if (count <= 0) return {0, 1};
  constexpr double z = 1.959963984540054;  // the normal distribution's 97.5 % quantile
  const double n = static_cast<double>(count);
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double centre = (fraction + z * z / (2 * n)) / (1 + z * z / n);
  const double half =
      z / (1 + z * z / n) * std::sqrt(fraction * (1 - fraction) / n + z * z / (4 * n * n));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

Interval student_t_interval(double estimate,
                            double standard_error,
                            double degrees_of_freedom,
                            double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw Error("a confidence lies between 0 and 1, " + shortest(confidence) + " does not");
  if (standard_error == 0) return {estimate, estimate};
  const double reach = student_t_critical_value(confidence, degrees_of_freedom) * standard_error;
  return {estimate - reach, estimate + reach};
}

Interval exact_interval_of_fraction(double fraction, int64_t count, double confidence) {
  if (count <= 0) return {0, 1};
  const double n = static_cast<double>(count);
  const double right = std::clamp(fraction, 0.0, 1.0) * n;
  const double tail = (1 - confidence) / 2;
  const auto quantile_of = [&](double a, double b) {
    return boost::math::ibeta_inv(a, b, tail, Policy());
  };
  return {right > 0 ? quantile_of(right, n - right + 1) : 0,
          right < n ? 1 - quantile_of(n - right, right + 1) : 1};
}

double sampling_error_of_fraction(double fraction, int64_t count) {
  if (count <= 0) return 0;
  const double n = static_cast<double>(count) + 4;
  const double share = (std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count) + 2) / n;
  return std::sqrt(share * (1 - share) / n);
}

namespace {

double total_of(const std::vector<int64_t>& weights) {
  double total = 0;
  for (const int64_t weight : weights) total += static_cast<double>(weight);
  return total;
}

double weighted_mean(const std::vector<double>& values, const std::vector<int64_t>& weights) {
  const double total = total_of(weights);
  double mean = 0;
  for (size_t i = 0; i < values.size(); ++i)
    mean += static_cast<double>(weights[i]) / total * values[i];
  return mean;
}

/// Rows of unequal weight tell as much as fewer equal ones (Kish 1965).
double effective_rows(const std::vector<int64_t>& weights) {
  const double total = total_of(weights);
  double squared_shares = 0;
  for (const int64_t weight : weights) {
    const double share = static_cast<double>(weight) / total;
    squared_shares += share * share;
  }
  return 1 / squared_shares;
}

}  // namespace

double covariance_of_weighted_means(const std::vector<double>& a,
                                    const std::vector<double>& b,
                                    const std::vector<int64_t>& weights) {
  const double total = total_of(weights);
  if (total == 0) return 0;
  if (weights.size() < 2) return std::numeric_limits<double>::infinity();
  const double mean_of_a = weighted_mean(a, weights), mean_of_b = weighted_mean(b, weights);
  double products = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(weights[i]) / total;
    products += share * share * (a[i] - mean_of_a) * (b[i] - mean_of_b);
  }
  const double rows = effective_rows(weights);
  return products * rows / std::max(rows - 1, 1.0);
}

MeanError error_of_weighted_mean(const std::vector<double>& values,
                                 const std::vector<int64_t>& weights) {
  if (total_of(weights) == 0) return {};
  if (values.size() < 2) return {std::numeric_limits<double>::infinity(), 1};
  return {std::sqrt(covariance_of_weighted_means(values, values, weights)),
          std::max(effective_rows(weights) - 1, 1.0)};
}

MeanError joint_error(const std::vector<MeanError>& errors) {
  MeanError joint;
  for (const MeanError& each : errors) {
    joint.standard_error = std::hypot(joint.standard_error, each.standard_error);
    joint.degrees_of_freedom = std::min(joint.degrees_of_freedom, each.degrees_of_freedom);
  }
  return joint;
}

double normal_critical_value(double confidence) { return normal_quantile(0.5 + confidence / 2); }

Summary summarize(const std::vector<double>& values,
                  uint64_t seed,
                  double confidence,
                  int64_t cases) {
  Summary summary;
  summary.n = values.size();
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  summary.mean = sum / static_cast<double>(values.size());
  const std::optional<Moments> moments = moments_of(values);
  if (!moments)
    return summary;  // of no value NaN, else that of values of which some are not finite
  summary.mean = moments->mean;
  if (moments->n < 2) return summary;
  summary.standard_deviation = moments->standard_deviation;
  summary.standard_error = moments->standard_error();
  const Interval of_student = student_t_interval(
      moments->mean, moments->standard_error(), static_cast<double>(moments->n - 1), confidence);
  summary.interval = of_student;
  if (moments->n >= bootstrap_min_n) {
    summary.method = IntervalMethod::bootstrap;
    summary.interval = bootstrap_interval(values, seed, confidence);
    if (confidence > bootstrap_most_confidence) {
      summary.interval->low = std::min(summary.interval->low, of_student.low);
      summary.interval->high = std::max(summary.interval->high, of_student.high);
    }
  }
  if (cases > 0) {
    const double mean = summary.mean;
    const auto [low, high] = *summary.interval;
    const Interval of_cases = exact_interval_of_fraction(mean, cases, confidence);
    summary.interval = {mean - std::hypot(mean - low, mean - of_cases.low),
                        mean + std::hypot(high - mean, of_cases.high - mean)};
  }
  return summary;
}

namespace {

double step_of_multiples(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  if (largest < 1e-12) largest = 0;  // differences of equal numbers
  // Of printed numbers, and of floating-point numbers with few bits.
  for (const double steps_in_one :
       {1.0,   2.0,   4.0,    8.0,    10.0,   16.0,   32.0,   64.0,    100.0, 128.0,
        256.0, 512.0, 1000.0, 1024.0, 2048.0, 4096.0, 8192.0, 10000.0, 1e5,   1e6}) {
    if (largest > 0 && largest * steps_in_one < 0.5) continue;  // small numbers are no multiples
    const bool fits = std::all_of(values.begin(), values.end(), [&](double value) {
      const double steps = value * steps_in_one;
      return std::fabs(steps - std::round(steps)) < 1e-6;
    });
    if (fits) return 1 / steps_in_one;
  }
  return 0;
}

}  // namespace

double rounding_step(const std::vector<double>& values) {
  if (const double step = step_of_multiples(values); step > 0) return step;
  constexpr double largest_loss = 20;  // beyond, a perplexity has no digits behind the point
  std::vector<double> bits, perplexities;
  double mean = 0;
  for (const double value : values) {
    if (value < 0 || value > largest_loss) return 0;
    bits.push_back(value / std::log(2.0));
    perplexities.push_back(std::expm1(value));  // as good for multiples, and small for small ones
    mean += value / static_cast<double>(values.size());
  }
  if (const double step = step_of_multiples(bits); step > 0) return step * std::log(2.0);
  return step_of_multiples(perplexities) / std::exp(mean);
}

bool is_hidden_by_rounding(const std::vector<double>& values, double step) {
  const std::optional<Moments> moments = moments_of(values);
  return moments && moments->n > 1 && moments->standard_deviation * std::sqrt(6.0) < step;
}

bool is_hidden_by_rounding(const std::vector<double>& values) {
  return is_hidden_by_rounding(values, rounding_step(values));
}

}  // namespace forge::statistics
