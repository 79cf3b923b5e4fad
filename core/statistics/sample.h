#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace forge::statistics {

/// The confidence of intervals where nobody asks for another.
constexpr double usual_confidence = 0.95;

struct Interval {
  double low = 0;
  double high = 0;

  /// Half of its length: how far it reaches to either side of its middle.
  double reach() const { return (high - low) / 2; }
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

/// How an interval was found.
enum class IntervalMethod { student_t, bootstrap };
const char* name_of(IntervalMethod method);  ///< "Student t", "bootstrap"

/// From so many values on the interval of a mean is a bootstrap's: below, resamples of so few
/// values vary too little.
constexpr size_t bootstrap_from = 20;

/// What is known of the mean of something from a sample of it.
struct Summary {
  size_t n = 0;
  double mean = 0;                           ///< NaN where a value is not finite and for none
  std::optional<double> standard_deviation;  ///< with n − 1 below; none for one value
  std::optional<double> standard_error;      ///< of the mean
  std::optional<Interval> interval;          ///< of the mean; none for one value
  IntervalMethod method = IntervalMethod::student_t;
};

/// The interval is Student's t below `bootstrap_from` values and a bootstrap's from there on
/// (core/statistics/bootstrap.h), whose random numbers depend on `seed` alone. Of values that are
/// not all finite only n is known. Throws Error for a confidence outside of 0 to 1 and for 65,536
/// values or more.
Summary summarize(const std::vector<double>& values,
                  uint64_t seed,
                  double confidence = usual_confidence);

/// The interval of something that was estimated with a standard error of so many degrees of
/// freedom. Throws Error for a confidence outside of 0 to 1.
Interval student_t_interval(double estimate,
                            double standard_error,
                            double degrees_of_freedom,
                            double confidence = usual_confidence);

}  // namespace forge::statistics
