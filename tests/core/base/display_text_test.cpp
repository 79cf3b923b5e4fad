#include "core/base/display_text.h"

#include "tests/support/catch.h"

namespace forge::tables {
namespace {

TEST_CASE("display width counts what a terminal shows", "[report]") {
  REQUIRE(display_width("") == 0);
  REQUIRE(display_width("abc") == 3);
  REQUIRE(display_width("\u22129.3 %") == 6);
  REQUIRE(display_width("\u6f22\u5b57") == 4);  // two wide characters
  REQUIRE(display_width("e\u0301") == 1);       // e with a combining accent
  REQUIRE(display_width("\xff\xfe") == 2);      // no UTF-8
}

TEST_CASE("words of a worker cannot steer the terminal", "[report]") {
  REQUIRE(printable("\x1b[31mred\x1b[0m") == "[31mred[0m");
  REQUIRE(printable("a\nb\tc\rd") == "a b c d");
  REQUIRE(printable("a\u202egnp.exe") == "agnp.exe");  // right-to-left override
  REQUIRE(printable("a\xff") == "a\uFFFD");
  REQUIRE(printable(std::string("a\0b", 3)) == "ab");
  REQUIRE(printable("\u00e9\u4e2d") == "\u00e9\u4e2d");
}

TEST_CASE("text is padded by its width", "[report]") {
  REQUIRE(pad_right("\u6f22", 4) == "\u6f22  ");
  REQUIRE(pad_left("\u22121", 4) == "  \u22121");
  REQUIRE(pad_left("long", 2) == "long");
}

TEST_CASE("text is wrapped at spaces and long words stay whole", "[report]") {
  REQUIRE(wrap("throughput +1.0 %, memory +2.0 %", 18) ==
          std::vector<std::string>{"throughput +1.0 %,", "memory +2.0 %"});
  REQUIRE(wrap("incomprehensibilities are long", 5) ==
          std::vector<std::string>{"incomprehensibilities", "are", "long"});
  REQUIRE(wrap("", 5) == std::vector<std::string>{""});
}

}  // namespace
}  // namespace forge::tables
