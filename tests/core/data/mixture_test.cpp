#include "core/data/mixture.h"

#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

TEST_CASE("after any number of rows each source has given its share to within one") {
  std::random_device device;
  const unsigned seed = device();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<double> weights(2 + random() % 9);
    for (double& weight : weights) weight = 1 + static_cast<double>(random() % 1000);
    const Mixture mixture(weights);
    std::vector<int64_t> given(weights.size());
    double furthest = 0;
    bool in_turn = true;
    for (int64_t position = 0; position < Mixture::period; ++position) {
      const Mixture::Place place = mixture.place_of(position);
      in_turn = in_turn && place.row == given[place.source]++;
      for (size_t i = 0; i < given.size(); ++i) {
        const double share = double(mixture.share(i)) / double(Mixture::period);
        furthest = std::max(furthest, std::abs(double(given[i]) - share * double(position + 1)));
      }
    }
    REQUIRE(in_turn);
    REQUIRE(furthest < 1);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (size_t i = 0; i < given.size(); ++i) {
      REQUIRE(given[i] == mixture.share(i));
      REQUIRE(std::abs(weights[i] / sum * double(Mixture::period) - double(given[i])) <= 1);
    }
  }
}

TEST_CASE("rows of a mixture go on in the next period and are counted anywhere") {
  const Mixture mixture({1, 2, 0.25});
  std::vector<int64_t> given(3);
  bool in_turn = true, counted = true;
  for (int64_t position = 0; position < 2 * Mixture::period + 17; ++position) {
    if (position % 9973 == 0) {
      for (size_t i = 0; i < 3; ++i) counted = counted && mixture.rows_of(i, position) == given[i];
    }
    const Mixture::Place place = mixture.place_of(position);
    in_turn = in_turn && place.row == given[place.source]++;
  }
  REQUIRE(in_turn);
  REQUIRE(counted);
  // Far away it costs the same and is no further from the share.
  const int64_t far = int64_t{1} << 50;
  REQUIRE(std::abs(double(mixture.rows_of(0, far)) / double(far) * 3.25 - 1) < 1e-4);
  REQUIRE(mixture.place_of(far).row >= 0);
}

TEST_CASE("the order of a mixture is this one on every machine") {
  const Mixture mixture({5, 3, 2});
  std::string order;
  for (int64_t position = 0; position < 20; ++position) {
    order += std::to_string(mixture.place_of(position).source);
  }
  REQUIRE(order == "01020101020102010102");
  REQUIRE(Mixture({50, 30, 20}).place_of(77).source == mixture.place_of(77).source);
}

TEST_CASE("one source gives all rows and weights that stand for none are refused") {
  const Mixture alone({0.5});
  REQUIRE(alone.place_of(int64_t{1} << 40).row == int64_t{1} << 40);
  REQUIRE(alone.rows_of(0, 7) == 7);
  REQUIRE(alone.share(0) == Mixture::period);
  REQUIRE(tests::error_of([] { Mixture({1, 0}); }) != "");
  REQUIRE(tests::error_of([] { Mixture({1, -1}); }) != "");
  REQUIRE(tests::error_of([] { Mixture({1, std::nan("")}); }) != "");
  REQUIRE(tests::error_of([] { Mixture(std::vector<double>{}); }) != "");
  REQUIRE(tests::error_of([] {
            Mixture({1, 1e-7});
          }).find("less than one row in 100,000") != std::string::npos);
}

}  // namespace
}  // namespace forge::data
