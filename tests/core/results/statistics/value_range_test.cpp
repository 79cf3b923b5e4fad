#include "core/results/statistics/value_range.h"

#include <cmath>
#include <functional>
#include <optional>

#include "tests/support/catch.h"

namespace forge::statistics {
namespace {

FunctionOfMeans function_of(Point means, std::function<std::optional<double>(const Point&)> value) {
  Point steps(means.size(), 1e-4);
  return {std::move(value), std::move(means), std::move(steps)};
}

/// The covariance of two means with variances 0.04 and 0.09.
Reach two_means(double covariance) {
  return within_ellipsoid({{0.04, covariance}, {covariance, 0.09}});
}

std::optional<Interval> values_within(const FunctionOfMeans& function, const Reach& reach) {
  const std::optional<Ends> ends = ends_within(function, reach);
  return ends ? std::optional<Interval>({ends->low.value, ends->high.value}) : std::nullopt;
}

TEST_CASE("a sum reaches as far as its standard deviation", "[statistics][range]") {
  const FunctionOfMeans difference =
      function_of({3, 1}, [](const Point& at) { return at[0] - at[1]; });
  const auto apart = values_within(difference, two_means(0));
  REQUIRE(apart);
  CHECK(apart->low == Approx(2 - std::sqrt(0.13)));
  CHECK(apart->high == Approx(2 + std::sqrt(0.13)));
  const auto together = values_within(difference, two_means(0.05));
  REQUIRE(together);
  CHECK(together->high == Approx(2 + std::sqrt(0.03)));
  const auto at_worst = values_within(difference, within_box({0.2, 0.3}));
  REQUIRE(at_worst);
  CHECK(at_worst->low == Approx(1.5));
  CHECK(at_worst->high == Approx(2.5));
}

TEST_CASE("a function of one mean has the ends of that mean put into it", "[statistics][range]") {
  const auto range =
      values_within(function_of({2}, [](const Point& at) { return std::exp(at[0]); }),
                    within_ellipsoid({{0.25}}));
  REQUIRE(range);
  CHECK(range->low == Approx(std::exp(1.5)));
  CHECK(range->high == Approx(std::exp(2.5)));
}

TEST_CASE("the range of a ratio is Fieller's", "[statistics][range]") {
  const auto ratio = [](const Point& at) -> std::optional<double> {
    return at[1] == 0 ? std::nullopt : std::optional<double>(at[0] / at[1]);
  };
  const auto range = values_within(function_of({3, 2}, ratio), two_means(0.01));
  REQUIRE(range);
  // Where (3 - r 2)² is the variance of at[0] - r at[1].
  for (const double r : {range->low, range->high})
    CHECK(std::pow(3 - 2 * r, 2) == Approx(0.04 - 2 * r * 0.01 + r * r * 0.09).epsilon(1e-4));
  CHECK_FALSE(values_within(function_of({3, 0.2}, ratio), two_means(0.01)));  // a pole
}

TEST_CASE("a function that turns within reach has no range", "[statistics][range]") {
  const auto square = [](const Point& at) { return at[0] * at[0]; };
  CHECK_FALSE(values_within(function_of({0.3}, square), within_ellipsoid({{0.25}})));
  CHECK(values_within(function_of({0.7}, square), within_ellipsoid({{0.25}})));
  const auto root = [](const Point& at) -> std::optional<double> {
    return at[0] < 0 ? std::nullopt : std::optional<double>(std::sqrt(at[0]));
  };
  CHECK_FALSE(values_within(function_of({0.3}, root), within_ellipsoid({{0.25}})));
}

TEST_CASE("a mean that moves nothing adds nothing", "[statistics][range]") {
  FunctionOfMeans sum = function_of({2, 0}, [](const Point& at) { return at[0] + at[1]; });
  sum.steps[1] = 0;
  const auto found = slopes(sum, sum.means);
  REQUIRE(found);
  CHECK((*found)[0] == Approx(1));
  CHECK((*found)[1] == 0);
}

TEST_CASE("the truth may lie in more directions than one where a function's values bend",
          "[statistics][range]") {
  const auto directions = [](const Point& means,
                             const std::function<std::optional<double>(const Point&)>& value) {
    Matrix squares(means.size(), Point(means.size(), 0.0));
    for (size_t i = 0; i < means.size(); ++i) squares[i][i] = 0.01;
    const FunctionOfMeans function = function_of(means, value);
    const Reach reach = within_ellipsoid(squares);
    const std::optional<Ends> ends = ends_within(function, reach);
    REQUIRE(ends);
    return directions_at_ends(function, *ends, reach, squares);
  };
  CHECK(directions({3, 1}, [](const Point& at) { return at[0] - at[1]; }) == 1);
  CHECK(directions({3, 1}, [](const Point& at) { return at[0] / at[1]; }) == 1);
  CHECK(directions({3, 1}, [](const Point& at) { return std::exp(5 * (at[0] - at[1])); }) == 1);
  CHECK(directions({3, 2, 1}, [](const Point& at) { return (at[0] - at[2]) / (at[1] - at[2]); }) ==
        1);
  CHECK(directions({300, 200}, [](const Point& at) { return at[0] * at[1]; }) == 1);
  const auto square = [](const Point& at) {
    double sum = 0;
    for (const double each : at) sum += each * each;
    return sum;
  };
  CHECK(directions({0.3}, square) == 1);
  CHECK(directions({0.2, 0.1}, square) == 2);
  CHECK(directions({0.2, 0.1, 0.2}, square) == 3);
  CHECK(directions({20, 10, 20}, square) == 1);  // as good as straight
}

}  // namespace
}  // namespace forge::statistics
