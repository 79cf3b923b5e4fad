#include "core/base/random.h"

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/catch.h"

namespace forge {
namespace {

TEST_CASE("Philox4x32-10 gives the known answers of its authors' test file") {
  // kat_vectors of the Random123 distribution.
  REQUIRE(philox({0, 0, 0, 0}, 0) ==
          std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, ~uint64_t{0}) ==
          std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
          std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream can be entered at any position") {
  RandomStream from_start(7, 3);
  for (int i = 0; i < 10; ++i) from_start.next_u32();
  RandomStream from_ten(7, 3, 10);
  for (int i = 0; i < 9; ++i) REQUIRE(from_start.next_u32() == from_ten.next_u32());
}

TEST_CASE("below stays below its bound and reaches every number") {
  RandomStream random(1, 2);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  REQUIRE(seen == std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6});
  for (int i = 0; i < 100; ++i) REQUIRE(random.below(uint64_t{1} << 40) < uint64_t{1} << 40);
}

TEST_CASE("portable_log agrees with the C library to the last bits") {
  for (double x = 1e-12; x < 1e12; x *= 1.37) {
    REQUIRE(std::fabs(portable_log(x) - std::log(x)) <=
            4e-16 * std::max(1.0, std::fabs(std::log(x))));
  }
}

TEST_CASE("portable_exp agrees with the C library to the last bits") {
  for (double x = -744; x < 709; x += 0.37) {
    REQUIRE(std::fabs(portable_exp(x) - std::exp(x)) <= 4e-16 * std::exp(x) + 5e-324);
  }
  REQUIRE(portable_exp(0) == 1);
  REQUIRE(portable_exp(-1e300) == 0);
  REQUIRE(std::isinf(portable_exp(1e300)));
  REQUIRE(portable_exp(-std::numeric_limits<double>::infinity()) == 0);
  REQUIRE(std::isnan(portable_exp(std::nan(""))));
}

TEST_CASE("the normal quantile inverts the distribution function") {
  // erfc loses digits far above the mean, so the upper tail is checked by symmetry.
  for (const double x : {-8.0, -5.5, -3.0, -1.5, -0.5, -0.01, 0.3, 1.0}) {
    REQUIRE(normal_quantile(normal_cdf(x)) == Approx(x).epsilon(1e-13));
  }
  REQUIRE(normal_quantile(0.975) == Approx(1.959963984540054).epsilon(1e-15));
  REQUIRE(normal_quantile(0.75) == -normal_quantile(0.25));
}

TEST_CASE("permuted_index is a permutation, another one for another seed") {
  for (const uint64_t size : {1u, 2u, 3u, 10u, 64u, 1000u}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < size; ++i) seen.insert(permuted_index(i, size, 5, 1));
    REQUIRE(seen.size() == size);
    REQUIRE(*seen.rbegin() == size - 1);
  }
  int moved = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    moved += permuted_index(i, 1000, 5, 1) != permuted_index(i, 1000, 6, 1);
  }
  REQUIRE(moved > 900);
}

}  // namespace
}  // namespace forge
