#include "core/statistics/sample.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

TEST_CASE("a sample has a mean, a standard deviation and an interval", "[statistics]") {
  const Summary summary = summarize({1, 2, 3, 4, 5}, 1);
  REQUIRE(summary.n == 5);
  REQUIRE(summary.mean == 3);
  REQUIRE(*summary.standard_deviation == Approx(std::sqrt(2.5)).epsilon(1e-15));
  REQUIRE(*summary.standard_error == Approx(std::sqrt(0.5)).epsilon(1e-15));
  REQUIRE(summary.method == IntervalMethod::student_t);
  // t of 4 degrees of freedom at 97.5 %: 2.7764451051977987.
  REQUIRE(summary.interval->low == Approx(3 - 2.7764451051977987 * std::sqrt(0.5)).epsilon(1e-13));
  REQUIRE(summary.interval->high == Approx(3 + 2.7764451051977987 * std::sqrt(0.5)).epsilon(1e-13));
}

TEST_CASE("one value has a mean and nothing else", "[statistics]") {
  const Summary summary = summarize({1.3}, 1);
  REQUIRE(summary.n == 1);
  REQUIRE(summary.mean == 1.3);
  REQUIRE_FALSE(summary.standard_deviation);
  REQUIRE_FALSE(summary.standard_error);
  REQUIRE_FALSE(summary.interval);
}

TEST_CASE("no values have no mean", "[statistics]") {
  const Summary summary = summarize({}, 1);
  REQUIRE(summary.n == 0);
  REQUIRE(std::isnan(summary.mean));
  REQUIRE_FALSE(summary.interval);
}

TEST_CASE("a value that is not finite leaves nothing to say of the others", "[statistics]") {
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    const Summary summary = summarize({1, value, 2}, 1);
    REQUIRE(summary.n == 3);
    REQUIRE(std::isnan(summary.mean));
    REQUIRE_FALSE(summary.standard_deviation);
    REQUIRE_FALSE(summary.interval);
  }
}

TEST_CASE("equal values have exactly no spread", "[statistics]") {
  for (const double value : {0.1, 3.7, -1e300, 1e-300, 0.0}) {
    for (const size_t n : {2, 3, 7, 19, 20, 31}) {
      const Summary summary = summarize(std::vector<double>(n, value), 1);
      REQUIRE(summary.mean == value);
      REQUIRE(*summary.standard_deviation == 0);
      REQUIRE(summary.interval->low == value);
      REQUIRE(summary.interval->high == value);
    }
  }
}

TEST_CASE("moments neither overflow nor vanish", "[statistics]") {
  for (const double unit : {1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    const Moments moments = *moments_of({1 * unit, 2 * unit, 3 * unit});
    REQUIRE(moments.mean == Approx(2 * unit).epsilon(1e-15));
    REQUIRE(moments.standard_deviation == Approx(unit).epsilon(1e-15));
  }
  // Too far apart for a double: nothing, not something wrong.
  const double largest = std::numeric_limits<double>::max();
  REQUIRE_FALSE(moments_of({-largest, largest}));
}

TEST_CASE("a small spread around a large mean keeps its digits", "[statistics]") {
  // 2^30 and steps of 2^-20 are exact.
  const double step = 0x1p-20;
  const Moments moments = *moments_of({0x1p30, 0x1p30 + step, 0x1p30 + 2 * step});
  REQUIRE(moments.mean == 0x1p30 + step);
  REQUIRE(moments.standard_deviation == Approx(step).epsilon(1e-14));
}

TEST_CASE("intervals are a bootstrap's from twenty values on", "[statistics]") {
  std::vector<double> values;
  for (int i = 0; i < 19; ++i) values.push_back(i * i);
  REQUIRE(summarize(values, 1).method == IntervalMethod::student_t);
  values.push_back(361);
  const Summary summary = summarize(values, 1);
  REQUIRE(summary.method == IntervalMethod::bootstrap);
  REQUIRE(summary.interval->contains(summary.mean));
}

TEST_CASE("a confidence lies between 0 and 1", "[statistics]") {
  for (const double confidence : {0.0, 1.0, 95.0, -0.5, double(NAN)}) {
    REQUIRE(tests::contains(tests::error_of([&] {
                              summarize({1, 2, 3}, 1, confidence);
                            }),
                            "a confidence lies between 0 and 1"));
  }
  const Summary narrow = summarize({1, 2, 3}, 1, 0.5);
  const Summary wide = summarize({1, 2, 3}, 1, 0.99);
  REQUIRE(wide.interval->low < narrow.interval->low);
  REQUIRE(wide.interval->high > narrow.interval->high);
}

}  // namespace
}  // namespace forge::statistics
