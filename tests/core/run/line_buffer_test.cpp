#include "core/run/line_buffer.h"

#include "core/base/random.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

std::vector<std::string> take_all(LineBuffer& buffer) {
  std::vector<std::string> lines;
  while (auto line = buffer.take()) lines.push_back(*line);
  return lines;
}

TEST_CASE("lines come out whole however the bytes come in", "[run][line_buffer]") {
  const std::string text = "one\n\nthree is longer\nfour\ntorn";
  const uint64_t seed = 7;
  INFO("seed " << seed);
  RandomStream random(seed, 0);
  for (int round = 0; round < 50; ++round) {
    LineBuffer buffer(100);
    for (size_t at = 0; at < text.size();) {
      const size_t count = 1 + random.below(6);
      buffer.feed(std::string_view(text).substr(at, count));
      at += count;
    }
    REQUIRE(take_all(buffer) == std::vector<std::string>{"one", "", "three is longer", "four"});
  }
}

TEST_CASE("an endless line is cut one byte beyond the limit", "[run][line_buffer]") {
  LineBuffer buffer(4);
  buffer.feed("abc");
  buffer.feed("defghi");
  buffer.feed("jkl\nok\nabcd\nabcde\n");
  REQUIRE(take_all(buffer) == std::vector<std::string>{"abcde", "ok", "abcd", "abcde"});
}

}  // namespace
}  // namespace forge::run
