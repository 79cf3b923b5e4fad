#include <cmath>

#include "core/results/statistics/significance.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

TEST_CASE("Welch's test of two known samples", "[statistics]") {
  // By hand: means 3 and 6, variances 1 and 4, squared errors 1/3 and 4/3.
  const Difference found = *welch_test({2, 3, 4}, {4, 6, 8});
  REQUIRE(found.difference == -3);
  REQUIRE(found.standard_error == Approx(std::sqrt(5.0 / 3)).epsilon(1e-15));
  REQUIRE(found.degrees_of_freedom == Approx(25.0 / 9 / (1.0 / 18 + 16.0 / 18)).epsilon(1e-14));
  REQUIRE(found.t == Approx(-3 / std::sqrt(5.0 / 3)).epsilon(1e-15));
  REQUIRE(found.interval.low + found.interval.high == Approx(-6).epsilon(1e-14));
  REQUIRE(found.interval.low < -3);
  // s² = 2.5, c(4) = Γ(2) / (√2 Γ(3/2)) = √(2/π).
  REQUIRE(*found.effect_size ==
          Approx(-3 / std::sqrt(2.5) * std::sqrt(2 / std::acos(-1.0))).epsilon(1e-13));
}

TEST_CASE("a difference is real exactly where its interval leaves 0 out", "[statistics]") {
  for (int i = 0; i <= 60; ++i) {
    const double shift = i / 20.0;
    const std::vector<double> own = {1 + shift, 2.2 + shift, 2.9 + shift, 4.1 + shift};
    const std::vector<double> baseline = {1.3, 1.9, 3.2};
    const Difference welch = *welch_test(own, baseline, 0.9);
    REQUIRE((welch.p > 0.1) == welch.interval.contains(0));
    const Difference paired = *paired_test(own, {1.3, 1.9, 3.2, 3.0}, 0.9);
    REQUIRE((paired.p > 0.1) == paired.interval.contains(0));
  }
}

TEST_CASE("pairs take off what both of a pair have", "[statistics]") {
  const std::vector<double> own = {1.11, 2.09, 3.12, 4.10};
  const std::vector<double> baseline = {1.0, 2.0, 3.0, 4.0};
  REQUIRE(welch_test(own, baseline)->p > 0.9);
  REQUIRE(paired_test(own, baseline)->p < 0.001);
  REQUIRE(paired_test(own, baseline)->degrees_of_freedom == 3);
  // The effect is in units of what the samples vary: by c(6 / (1 + r²)) with r all but 1.
  REQUIRE(*paired_test(own, baseline)->effect_size == Approx(0.105 / 1.29 * 0.7236).epsilon(0.01));
}

TEST_CASE("pairs do not depend on their order, but on who is with whom", "[statistics]") {
  const Difference first = *paired_test({1, 2, 4}, {2, 2.5, 3});
  const Difference turned = *paired_test({4, 1, 2}, {3, 2, 2.5});
  REQUIRE(first.t == Approx(turned.t).epsilon(1e-14));
  REQUIRE(paired_test({4, 1, 2}, {2, 2.5, 3})->t != Approx(first.t));
}

TEST_CASE("a sample of one tells nothing about a difference", "[statistics]") {
  REQUIRE_FALSE(welch_test({1}, {2, 3, 4}));
  REQUIRE_FALSE(welch_test({2, 3, 4}, {1}));
  REQUIRE_FALSE(welch_test({}, {1, 2}));
  REQUIRE_FALSE(paired_test({1}, {2}));
  REQUIRE_FALSE(paired_test({}, {}));
  REQUIRE_FALSE(one_sample_test({1}, 0));
}

TEST_CASE("a value that is not finite tells nothing about a difference", "[statistics]") {
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    REQUIRE_FALSE(welch_test({1, 2, value}, {1, 2, 3}));
    REQUIRE_FALSE(welch_test({1, 2, 3}, {1, value, 3}));
    REQUIRE_FALSE(paired_test({1, 2, value}, {1, 2, 3}));
    REQUIRE_FALSE(paired_test({1, 2, value}, {1, 2, value}));
    REQUIRE_FALSE(one_sample_test({1, 2, 3}, value));
  }
}

TEST_CASE("samples without spread leave it open whether they differ", "[statistics]") {
  REQUIRE_FALSE(welch_test({0.1, 0.1, 0.1}, {0.1, 0.1}));
  REQUIRE_FALSE(welch_test({0.1, 0.1, 0.1}, {0.3, 0.3}));
  REQUIRE_FALSE(paired_test({2, 3, 4}, {2, 3, 4}));
  REQUIRE_FALSE(paired_test({2, 3, 4}, {1, 2, 3}));
  REQUIRE_FALSE(one_sample_test({2, 2}, 1));
  REQUIRE_FALSE(student_t_test(1, 0, 5));
}

TEST_CASE("seeds that agree are not surer than their cases allow", "[statistics]") {
  // 98 of 100 right beside 90 of 100, whatever the seed.
  const double own = sampling_error_of_fraction(0.98, 100);
  REQUIRE(own == Approx(std::sqrt(100.0 / 104 * (4.0 / 104) / 104)));
  const double error = std::hypot(own, sampling_error_of_fraction(0.90, 100));
  const Difference found =
      *welch_test({0.98, 0.98, 0.98}, {0.90, 0.90, 0.90}, default_confidence, error);
  REQUIRE(found.p == Approx(normal_two_sided_p(0.08 / error)));
  REQUIRE(found.interval.half_width() == Approx(1.959964 * error).epsilon(1e-6));
  REQUIRE(std::isinf(found.t));
  // What seeds change does not contain what other cases would: both errors add up.
  const Difference seeds = *welch_test({0.9, 0.5, 0.7}, {0.2, 0.4, 0.6});
  const Difference both = *welch_test({0.9, 0.5, 0.7}, {0.2, 0.4, 0.6}, default_confidence, 0.15);
  REQUIRE(both.interval.half_width() ==
          Approx(std::hypot(seeds.interval.half_width(), 1.959964 * 0.15)).epsilon(1e-6));
  REQUIRE(both.standard_error == Approx(std::hypot(seeds.standard_error, 0.15)));
  REQUIRE(both.p > seeds.p);
  REQUIRE(sampling_error_of_fraction(1, 256) > 0);
  REQUIRE(sampling_error_of_fraction(0.5, 0) == 0);
  REQUIRE(normal_two_sided_p(1.959963984540054) == Approx(0.05).epsilon(1e-12));
}

TEST_CASE("one sample without spread leaves the other to judge by", "[statistics]") {
  const Difference found = *welch_test({2, 2, 2}, {1, 2, 4});
  REQUIRE(found.degrees_of_freedom == Approx(2).epsilon(1e-14));
  REQUIRE(found.t == Approx(one_sample_test({1, 2, 4}, 2)->t * -1).epsilon(1e-14));
  REQUIRE(found.p == Approx(one_sample_test({1, 2, 4}, 2)->p).epsilon(1e-13));
}

TEST_CASE("too few values have no effect size", "[statistics]") {
  REQUIRE_FALSE(paired_test({1, 2}, {3, 5})->effect_size);
  REQUIRE_FALSE(one_sample_test({1, 2}, 0)->effect_size);
  REQUIRE(welch_test({1, 2}, {3, 5})->effect_size);
}

TEST_CASE("both ways round a difference is the same", "[statistics]") {
  const Difference there = *welch_test({1, 2, 4, 3.5}, {2, 7, 5});
  const Difference back = *welch_test({2, 7, 5}, {1, 2, 4, 3.5});
  REQUIRE(there.p == back.p);
  REQUIRE(there.difference == -back.difference);
  REQUIRE(there.interval.low == -back.interval.high);
  REQUIRE(*there.effect_size == -*back.effect_size);
}

TEST_CASE("pairs need partners", "[statistics]") {
  REQUIRE(tests::contains(tests::error_of([] {
                            paired_test({1, 2}, {1, 2, 3});
                          }),
                          "pairs need samples of one size, not of 2 and 3 values"));
  REQUIRE(tests::contains(tests::error_of([] {
                            welch_test({1, 2}, {1, 2}, 95);
                          }),
                          "between 0 and 1, 95.0 does not"));
}

using Ps = std::vector<std::optional<double>>;

TEST_CASE("Holm multiplies the smallest p the most", "[statistics]") {
  REQUIRE(holm_adjusted({0.01, 0.5, 0.02, 0.03}) == Ps{0.04, 0.5, 0.06, 0.06});
  REQUIRE(holm_adjusted({0.01}) == Ps{0.01});
  REQUIRE(holm_adjusted({}).empty());
}

TEST_CASE("no adjusted p is above 1 or below a smaller one's", "[statistics]") {
  REQUIRE(holm_adjusted({0.4, 0.9, 0.0}) == Ps{0.8, 0.9, 0.0});
  REQUIRE(holm_adjusted({0.4, 0.6, 0.6}) == Ps{1.0, 1.0, 1.0});
  REQUIRE(holm_adjusted({1.0, 1.0}) == Ps{1.0, 1.0});
}

TEST_CASE("equal p stay equal", "[statistics]") {
  REQUIRE(holm_adjusted({0.25, 0.125, 0.125}) == Ps{0.375, 0.375, 0.375});
}

TEST_CASE("what was not tested does not count", "[statistics]") {
  const Ps adjusted = holm_adjusted({0.01, std::nullopt, std::nan(""), 0.04});
  REQUIRE(adjusted == Ps{0.02, std::nullopt, std::nullopt, 0.04});
}

TEST_CASE("a p lies in 0 to 1", "[statistics]") {
  REQUIRE(tests::contains(tests::error_of([] {
                            holm_adjusted({0.1, 1.5});
                          }),
                          "a p lies in 0 to 1, 1.5 does not"));
  REQUIRE(tests::contains(tests::error_of([] { holm_adjusted({-0.1}); }), "-0.1 does not"));
}

TEST_CASE("all looks at all sets of runs err in less than 5 % together", "[statistics]") {
  double of_sets = 0;
  for (size_t set = 1; set < 10000; ++set) of_sets += 1 / set_factor(set);
  CHECK(set_factor(1) == 1);
  for (const size_t planned : {0, 2, 5, 20}) {
    double of_looks = 0;
    for (size_t seeds = 2; seeds < 10000; ++seeds) of_looks += 1 / look_factor(seeds, planned);
    CAPTURE(planned);
    CHECK(of_looks * of_sets <= 1);
    CHECK(of_looks * of_sets > 0.95);
  }
}

}  // namespace
}  // namespace forge::statistics
