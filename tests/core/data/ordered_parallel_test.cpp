#include "core/data/ordered_parallel.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace forge::data {
namespace {

std::vector<int32_t> number(int64_t i) { return {static_cast<int32_t>(i)}; }

TEST_CASE("results are taken in order") {
  std::vector<int32_t> taken;
  ordered_parallel(50, number, [&](const std::vector<int32_t>& result) {
    taken.push_back(result[0]);
    return true;
  });
  REQUIRE(taken.size() == 50);
  for (int i = 0; i < 50; ++i) REQUIRE(taken[i] == i);
}

TEST_CASE("taking may end it and nothing is made of nothing") {
  int taken = 0;
  ordered_parallel(-1, number, [&](const std::vector<int32_t>&) { return ++taken < 7; });
  REQUIRE(taken == 7);
  ordered_parallel(0, number, [&](const std::vector<int32_t>&) { return ++taken > 0; });
  REQUIRE(taken == 7);
}

TEST_CASE("what making or taking throws comes out") {
  const auto take = [](const std::vector<int32_t>&) { return true; };
  const auto fail_at_3 = [](int64_t i) -> std::vector<int32_t> {
    if (i == 3) throw std::runtime_error("made badly");
    return number(i);
  };
  REQUIRE_THROWS_WITH(ordered_parallel(10, fail_at_3, take), "made badly");
  const auto refuse = [](const std::vector<int32_t>&) -> bool { throw std::runtime_error("stop"); };
  REQUIRE_THROWS_WITH(ordered_parallel(-1, number, refuse), "stop");
}

}  // namespace
}  // namespace forge::data
