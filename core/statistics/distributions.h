#pragma once

/// The distributions that the tests of this folder need.
namespace forge::statistics {

/// P(|T| >= |t|) for Student's t with `degrees_of_freedom` > 0, exact far into the tail: the test's
/// two-sided p. 0 for an infinite t.
double student_t_two_sided_p(double t, double degrees_of_freedom);

/// P(T <= t).
double student_t_cdf(double t, double degrees_of_freedom);

/// The t with P(|T| <= t) = confidence, for 0 < confidence < 1: so many standard errors an interval
/// reaches to either side.
double student_t_reach(double confidence, double degrees_of_freedom);

/// Γ(m/2) / (√(m/2) Γ((m−1)/2)) for m > 1: by what a standardised difference is multiplied so that
/// a standard deviation of m degrees of freedom does not make it too large. L. V. Hedges,
/// J. Educational Statistics 6 (1981) 107, where it is c(m).
double small_sample_correction(double degrees_of_freedom);

}  // namespace forge::statistics
