#include "core/statistics/distributions.h"

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

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

double student_t_cdf(double t, double degrees_of_freedom) {
  const double tail = student_t_two_sided_p(t, degrees_of_freedom) / 2;
  return t < 0 ? tail : 1 - tail;
}

double student_t_reach(double confidence, double degrees_of_freedom) {
  const double tail = (1 - confidence) / 2;
  return boost::math::quantile(boost::math::complement(StudentT(degrees_of_freedom), tail));
}

double small_sample_correction(double degrees_of_freedom) {
  const double half = degrees_of_freedom / 2;
  return boost::math::tgamma_delta_ratio(half, -0.5, Policy()) / std::sqrt(half);
}

}  // namespace forge::statistics
