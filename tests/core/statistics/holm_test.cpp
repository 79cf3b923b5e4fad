#include "core/statistics/holm.h"

#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

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

}  // namespace
}  // namespace forge::statistics
