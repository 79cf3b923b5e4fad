#include "core/data/byte_symbols.h"

#include <set>

#include "tests/support/catch.h"

namespace forge::data {
namespace {

TEST_CASE("byte symbols are those of GPT-2") {
  REQUIRE(to_symbols("A") == "A");
  REQUIRE(to_symbols(" ") == "\u0120");
  REQUIRE(to_symbols("\n") == "\u010a");
  REQUIRE(to_symbols("\xad") == "\u0143");
  REQUIRE(to_symbols("\u00e9") == "\u00c3\u00a9");
  const std::set<uint16_t> distinct(byte_symbols().begin(), byte_symbols().end());
  REQUIRE(distinct.size() == 256);
}

TEST_CASE("bytes are ordered by the code points of their symbols") {
  REQUIRE(bytes_by_symbol()[0] == '!');
  REQUIRE(bytes_by_symbol()[93] == '~');
  REQUIRE(bytes_by_symbol()[94] == 0xa1);
  REQUIRE(bytes_by_symbol()[188] == 0);
  REQUIRE(bytes_by_symbol()[255] == 0xad);
}

TEST_CASE("symbols become bytes again and others are refused") {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  REQUIRE(from_symbols(to_symbols(every_byte)) == every_byte);
  REQUIRE_FALSE(from_symbols(" "));
  REQUIRE_FALSE(from_symbols("\u0144"));
  REQUIRE_FALSE(from_symbols("\u20ac"));
  REQUIRE_FALSE(from_symbols("\xc4"));
  REQUIRE_FALSE(from_symbols("\xc4\x20"));
}

}  // namespace
}  // namespace forge::data
