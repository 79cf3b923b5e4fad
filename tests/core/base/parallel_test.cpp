#include "core/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("parallel_for calls every index once") {
  for (const size_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    parallel_for(count, [&](size_t i) { ++calls[i]; });
    for (const auto& number : calls) CHECK(number == 1);
  }
}

TEST_CASE("parallel_for throws the first exception by index") {
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::string thrown;
    try {
      parallel_for(100, [&](size_t i) {
        if (i == 40 || i == 41 || i == 99) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    CHECK(thrown == "40");
  }
}

}  // namespace
}  // namespace forge::tests
