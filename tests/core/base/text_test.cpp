#include "core/base/text.h"

#include "tests/support/catch.h"

namespace forge {
namespace {

TEST_CASE("near misses are the few known words that are a typing error away") {
  const std::vector<std::string> keys = {"hidden_size", "num_layers", "num_heads", "vocab_size"};
  REQUIRE(did_you_mean("hiden_size", keys) == "did you mean 'hidden_size'?");
  REQUIRE(did_you_mean("learning_rate", keys).empty());
  REQUIRE(near_misses("num_heads", keys).front() == "num_heads");
}

TEST_CASE("edit distance counts insertions and deletions and replacements and swaps") {
  REQUIRE(edit_distance("", "abc") == 3);
  REQUIRE(edit_distance("kitten", "sitting") == 3);
  REQUIRE(edit_distance("same", "same") == 0);
  REQUIRE(edit_distance("rnu", "run") == 1);
  REQUIRE(edit_distance("ab", "ba") == 1);
}

TEST_CASE("numbers are written as a reader expects them") {
  REQUIRE(with_thousands(0) == "0");
  REQUIRE(with_thousands(999) == "999");
  REQUIRE(with_thousands(-1234567) == "-1,234,567");
  REQUIRE(human_bytes(512) == "512 B");
  REQUIRE(human_bytes(1536) == "1.50 KiB");
  REQUIRE(human_duration(42.4) == "42s");
  REQUIRE(human_duration(200) == "3m 20s");
  REQUIRE(human_duration(7500) == "2h 05m");
}

TEST_CASE("shortest is Python's repr of a float") {
  REQUIRE(shortest(0.001) == "0.001");
  REQUIRE(shortest(1e-5) == "1e-05");
  REQUIRE(shortest(6.0) == "6.0");
  REQUIRE(shortest(1e16) == "1e+16");
  REQUIRE(shortest(123456789012345.0) == "123456789012345.0");
  REQUIRE(shortest(0.1 + 0.2) == "0.30000000000000004");
  REQUIRE(shortest(-0.0) == "-0.0");
}

TEST_CASE("split keeps empty parts and join undoes it") {
  REQUIRE(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  REQUIRE(join(split("a,,b", ','), ",") == "a,,b");
}

}  // namespace
}  // namespace forge
