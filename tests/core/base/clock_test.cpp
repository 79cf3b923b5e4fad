#include "core/base/clock.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge {
namespace {

TEST_CASE("a time is written as a UTC date or as seconds since 1970") {
  REQUIRE(parse_time("1700000000") == 1700000000);
  REQUIRE(parse_time("2023-11-14T22:13:20Z") == 1700000000);
  REQUIRE(parse_time("2023-11-14T22:13:20") == 1700000000);
  REQUIRE(parse_time("2023-11-14") == 1699920000);
  for (const char* text : {"", "yesterday", "2023-11-14T", "12:00", "-5", "1234567890123"}) {
    INFO(text);
    REQUIRE(tests::error_of([&] { parse_time(text); }).find("is no time") != std::string::npos);
  }
}

TEST_CASE("a time in a file's name has neither dashes nor colons") {
  REQUIRE(compact_timestamp("2026-11-21T03:40:12.345Z") == "20261121T034012Z");
  REQUIRE(compact_timestamp(utc_timestamp(1700000000)) == "20231114T221320Z");
}

}  // namespace
}  // namespace forge
