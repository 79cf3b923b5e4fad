#include "core/benchmark/statistics.h"

#include <cmath>

#include "tests/support/catch.h"

namespace forge::benchmark {
namespace {

TEST_CASE("quantiles lie between the values in order", "[benchmark]") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  REQUIRE(median(values) == 3);
  REQUIRE(quantile(values, 0.25) == 2);
  REQUIRE(quantile(values, 0.75) == 4);
  REQUIRE(quantile(values, 0) == 1);
  REQUIRE(quantile(values, 1) == 5);
  REQUIRE(median({1, 2}) == 1.5);
  REQUIRE(quantile({10, 20}, 0.25) == 12.5);
  REQUIRE(median({7}) == 7);
  REQUIRE(std::isnan(median({})));
}

TEST_CASE("the spread is half the middle half of the windows", "[benchmark]") {
  REQUIRE(spread({98, 100, 99, 102, 101}) == Approx(1.0 / 100));
  // One slow window does not move it.
  REQUIRE(spread({10, 100, 99, 102, 101}) == Approx(1.0 / 100));
  REQUIRE(spread({100, 100, 100}) == 0);
  REQUIRE(spread({100}) == 0);
  REQUIRE(spread({}) == 0);
}

TEST_CASE("ratios are taken window by window", "[benchmark]") {
  // Both slow down by half, the ratio does not.
  REQUIRE(ratios({90, 45}, {100, 50}) == std::vector<double>{0.9, 0.9});
  REQUIRE(ratios({90, 45, 30}, {100}) == std::vector<double>{0.9});
  REQUIRE(ratios({}, {1}).empty());
}

}  // namespace
}  // namespace forge::benchmark
