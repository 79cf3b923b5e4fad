#include "core/statistics/bootstrap.h"

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

std::vector<double> normal_values(size_t n, uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) values.push_back(normal_quantile(open_uniform(random.next_u32())));
  return values;
}

TEST_CASE("the same values and seed give the same interval", "[statistics]") {
  const std::vector<double> values = normal_values(25, 3);
  const Interval first = bootstrap_interval(values, 7);
  const Interval again = bootstrap_interval(values, 7);
  REQUIRE(first.low == again.low);
  REQUIRE(first.high == again.high);
  REQUIRE(bootstrap_interval(values, 8).low != first.low);
}

TEST_CASE("a bootstrap's interval moves with its values", "[statistics]") {
  const std::vector<double> values = normal_values(25, 3);
  std::vector<double> moved;
  for (const double value : values) moved.push_back(1024 + value);
  const Interval first = bootstrap_interval(values, 7);
  const Interval other = bootstrap_interval(moved, 7);
  REQUIRE(other.low == Approx(1024 + first.low).epsilon(1e-12));
  REQUIRE(other.high == Approx(1024 + first.high).epsilon(1e-12));
}

TEST_CASE("the interval of skewed values reaches further where the tail is", "[statistics]") {
  std::vector<double> values;
  for (const double value : normal_values(40, 5)) values.push_back(std::exp(value));
  const double mean = moments_of(values)->mean;
  const Interval interval = bootstrap_interval(values, 1);
  REQUIRE(interval.high - mean > 1.15 * (mean - interval.low));
}

TEST_CASE("resamples that equal the sample count half", "[statistics]") {
  // Mirrored values: neither end may be favoured by more than chance.
  std::vector<double> values;
  for (int i = 0; i < 10; ++i) values.insert(values.end(), {0.1, 0.7});
  const Interval interval = bootstrap_interval(values, 1);
  REQUIRE(interval.low == Approx(0.4 - (interval.high - 0.4)).margin(0.0301));
}

TEST_CASE("a bootstrap needs two finite values", "[statistics]") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values :
       {std::vector<double>{}, std::vector<double>{1}, std::vector<double>{1, 2, infinity}}) {
    REQUIRE(tests::contains(tests::error_of([&] { bootstrap_interval(values, 1); }),
                            "at least two values, all of them finite"));
  }
  REQUIRE(tests::contains(tests::error_of([] {
                            bootstrap_interval({1, 2, 3}, 1, 1.5);
                          }),
                          "between 0 and 1, 1.5 does not"));
  std::vector<double> many(65536);
  many.back() = 1;
  REQUIRE(tests::contains(tests::error_of([&] { bootstrap_interval(many, 1); }),
                          "less than 65,536 values, not 65536"));
  many.pop_back();
  many.back() = 1;
  REQUIRE(bootstrap_interval(many, 1).contains(1 / 65535.0));
}

TEST_CASE("extreme samples stay within their values", "[statistics]") {
  for (const double confidence : {0.5, 0.95, 0.999999999}) {
    std::vector<double> outlier(29, 1.0);
    outlier.push_back(1e9);
    const Interval interval = bootstrap_interval(outlier, 1, confidence);
    REQUIRE(interval.low >= 1);
    REQUIRE(interval.high <= 1e9);
    REQUIRE(interval.low <= interval.high);
  }
}

}  // namespace
}  // namespace forge::statistics
