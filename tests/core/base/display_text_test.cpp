#include "core/base/display_text.h"

#include <sstream>

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

TEST_CASE("colours take no width and stay in cells", "[report]") {
  REQUIRE(display_width("\x1b[2mdim\x1b[0m") == 3);
  REQUIRE(display_width("\x1b[38;5;208m\u28ff\x1b[0m") == 1);
  REQUIRE(pad_right("\x1b[1ma\x1b[0m", 3) == "\x1b[1ma\x1b[0m  ");
  REQUIRE(printable_cell("\x1b[1ma\x1b[0m\n") == "\x1b[1ma\x1b[0m ");
}

TEST_CASE("colours that hide text and all other sequences are no colours of forge", "[hostile]") {
  for (const char* sequence :
       {"\x1b[8m", "\x1b[30;40m", "\x1b[38;5;m", "\x1b[2J", "\x1b]0;title\x07"})
    REQUIRE(printable_cell(sequence).find('\x1b') == std::string::npos);
  REQUIRE(printable_lines("a\tb\r\nc\rd\n\x1b[1m\xc2\x9b"
                          "e") == "a\tb\r\nc d\n[1me");
}

TEST_CASE("JSON that is printed keeps its values", "[hostile]") {
  REQUIRE(printable_json("[\"\x7f \xc2\x9b \u202e \u00e9 \U0001f468\u200d\U0001f469\"]") ==
          "[\"\\u007f \\u009b \\u202e \u00e9 \U0001f468\u200d\U0001f469\"]");
}

TEST_CASE("a stream prints nothing that steers the terminal", "[hostile]") {
  std::ostringstream stream;
  {
    const PrintableOutput output(stream);
    stream << "a\x1b]0;title\x07" << '\x1b' << "[2J\xc2\x9bx\n";
    stream << "\x1b[" << 1 << "mbold\x1b[0m" << std::flush;
    PrintableOutput::write_raw(stream, "\r\x1b[K");
    stream << "\u2588\xe2\x96" << std::flush << '\x88' << "\r"
           << "\n";
    stream << "cut \xe2\x96";
  }
  REQUIRE(stream.str() ==
          "a]0;title[2Jx\n\x1b[1mbold\x1b[0m\r\x1b[K\u2588\u2588\r\ncut \uFFFD\uFFFD");
  stream << '\x1b';
  REQUIRE(stream.str().back() == '\x1b');
}

TEST_CASE("a drawn line gives way to whatever else is printed") {
  std::ostringstream out, err;
  {
    const PrintableOutput to_out(out), to_err(err);
    PrintableOutput::draw_line(err, "10 %");
    PrintableOutput::draw_line(err, "20 %");
    err << "warning\n";
    err << "note\n";
    PrintableOutput::draw_line(err, "30 %");
    out << "result\n";  // on the same terminal, perhaps
    PrintableOutput::draw_line(err, "");
  }
  const std::string erased = "\r\x1b[K";
  REQUIRE(err.str() == "10 %" + erased + "20 %" + erased + "warning\nnote\n30 %" + erased);
  REQUIRE(out.str() == "result\n");
}

}  // namespace
}  // namespace forge::tables
