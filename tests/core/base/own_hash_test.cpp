#include "core/base/own_hash.h"

#include "tests/support/catch.h"

namespace forge {
namespace {

TEST_CASE("a text with its own hash is known until it is changed") {
  const std::string text = with_own_hash("a\n" + own_hash_mark() + "\nb\n" + own_hash_mark());
  CHECK(text.find("00000000000000") == std::string::npos);
  CHECK(has_own_hash(text));
  CHECK(with_own_hash(text) == text);
  CHECK_FALSE(has_own_hash("A" + text.substr(1)));
  CHECK_FALSE(has_own_hash(text + "\n"));
  CHECK_FALSE(has_own_hash(text.substr(0, text.size() - 1)));
}

TEST_CASE("a text without a hash of its own has none") {
  CHECK(with_own_hash("a\n") == "a\n");
  for (const char* text : {"", "a\n", "forge-hash:", "forge-hash:12", "a forge-hash"})
    CHECK_FALSE(has_own_hash(text));
  CHECK_FALSE(has_own_hash(own_hash_mark()));
}

}  // namespace
}  // namespace forge
