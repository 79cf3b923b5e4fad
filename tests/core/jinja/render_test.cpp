#include "tests/core/jinja/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

/// The places that led to the origin of an output line, innermost first.
std::string way_to(const jinja::RenderedText& text, int line) {
  std::string way;
  const SourceSpan span = text.origin(line, 1);
  for (const SourceSpan* via = span.via.get(); via; via = via->via.get()) {
    const std::string place = via->describe();
    way += (way.empty() ? "" : " < ") + place.substr(place.find_last_of('/', place.find(':')) + 1);
  }
  return way;
}

TEST_CASE("template text keeps its line and column through comments and statements") {
  Templates templates({{"main", "## comment\na: 1\n-- set x = 2\n  b: {{ x }} c ## gone\n"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "a: 1\n  b: 2 c");
  CHECK(origin_of(text, 1, 1) == "main:2:1");
  CHECK(origin_of(text, 1, 4) == "main:2:4");
  CHECK(origin_of(text, 2, 3) == "main:4:3");
  CHECK(origin_of(text, 2, 6) == "main:4:9");   // printed by the expression
  CHECK(origin_of(text, 2, 8) == "main:4:14");  // the text behind it
}

TEST_CASE("a printed line belongs to its sigil line's expression") {
  Templates templates({{"main", "x\n    == 1 + 2\n"}});
  const jinja::RenderedText text = templates.rendered();
  CHECK(origin_of(text, 2, 1) == "main:2:8");
}

TEST_CASE("text that super gives belongs to the template that wrote it") {
  Templates templates({{"main", "-- extends 'mid'\n[a]\n== super()\nmain: 1\n"},
                       {"mid", "-- extends 'base'\n[a]\n=> super()\nmid: 1\n"},
                       {"base", "head\n[a]\n\nbase: {{ 1 + 1 }}\n\n[b]\ntail\n"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "head\nbase: 2\nmid: 1\n\nmain: 1\n\ntail\n");
  CHECK(origin_of(text, 1, 1) == "base:1:1");
  CHECK(origin_of(text, 2, 1) == "base:4:1");
  CHECK(origin_of(text, 2, 7) == "base:4:10");
  CHECK(origin_of(text, 3, 1) == "mid:4:1");
  CHECK(origin_of(text, 5, 1) == "main:4:1");
  CHECK(origin_of(text, 7, 1) == "base:7:1");
  CHECK(way_to(text, 2) == "mid:1:4 < main:1:4");
  CHECK(way_to(text, 5) == "");
}

TEST_CASE("filter blocks and set blocks and joins keep the origins of their parts") {
  Templates templates({{"main",
                        "-- filter trim()\n\n  a: 1\n\n-- endfilter\n\n-- set s\nb: 2\n-- endset\n"
                        "== s ~ 'c'\n== [s, 'd'] | join('; ')\n"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "a: 1\nb: 2\nc\nb: 2\n; d");
  CHECK(origin_of(text, 1, 1) == "main:3:3");
  CHECK(origin_of(text, 2, 1) == "main:8:1");
  CHECK(origin_of(text, 3, 1) == "main:10:4");
  CHECK(origin_of(text, 4, 1) == "main:8:1");
  CHECK(origin_of(text, 5, 1) == "main:11:4");
}

TEST_CASE("an inline template's text has the lines of its file") {
  Templates templates({{"main", "-- include 'part'\n\nx\n#--- part ---\n## c\nkey: 1\n"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "key: 1\nx");
  CHECK(origin_of(text, 1, 1) == "main:6:1 (inline part)");
  CHECK(way_to(text, 1) == "main:1:4");
  CHECK(text.origin(1, 1).line_text() == "key: 1");
  CHECK(origin_of(text, 2, 1) == "main:3:1");
}

TEST_CASE("text that a macro writes is reached through the call") {
  Templates templates({{"main", "-- from 'm' import f\n\n== f('x')\n"},
                       {"m", "-- macro f(t)\nvalue: {{ t }}\n-- endmacro\n"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "\nvalue: x\n");
  CHECK(origin_of(text, 2, 1) == "m:2:1");
  CHECK(way_to(text, 2) == "main:3:4");
}

TEST_CASE("a template included twice tells the two uses apart") {
  Templates templates({{"main", "-- include 'i'\n\n-- include 'i'\n"}, {"i", "x"}});
  const jinja::RenderedText text = templates.rendered();
  REQUIRE(text.text == "x\nx");
  CHECK(way_to(text, 1) == "main:1:4");
  CHECK(way_to(text, 2) == "main:3:4");
}

TEST_CASE("a place behind the end belongs to what was written last") {
  Templates templates({{"main", "a\nb\n\n"}});
  const jinja::RenderedText text = templates.rendered();
  CHECK(origin_of(text, 9, 9) == "main:2:1");
  CHECK(origin_of(text, 3, 1) == "main:2:1");
  CHECK(Templates({{"main", ""}}).rendered().origin(1, 1).describe() == "");
}

}  // namespace
}  // namespace forge::tests
