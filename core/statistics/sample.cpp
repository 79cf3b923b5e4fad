#include "core/statistics/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/statistics/bootstrap.h"
#include "core/statistics/distributions.h"

namespace forge::statistics {
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

Interval student_t_interval(double estimate,
                            double standard_error,
                            double degrees_of_freedom,
                            double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw Error("a confidence lies between 0 and 1, " + shortest(confidence) + " does not");
  if (standard_error == 0) return {estimate, estimate};
  const double reach = student_t_reach(confidence, degrees_of_freedom) * standard_error;
  return {estimate - reach, estimate + reach};
}

Summary summarize(const std::vector<double>& values, uint64_t seed, double confidence) {
  Summary summary;
  summary.n = values.size();
  summary.mean = std::numeric_limits<double>::quiet_NaN();
  const std::optional<Moments> moments = moments_of(values);
  if (!moments) return summary;
  summary.mean = moments->mean;
  if (moments->n < 2) return summary;
  summary.standard_deviation = moments->standard_deviation;
  summary.standard_error = moments->standard_error();
  if (moments->n < bootstrap_from) {
    summary.interval = student_t_interval(
        moments->mean, moments->standard_error(), static_cast<double>(moments->n - 1), confidence);
  } else {
    summary.method = IntervalMethod::bootstrap;
    summary.interval = bootstrap_interval(values, seed, confidence);
  }
  return summary;
}

}  // namespace forge::statistics
