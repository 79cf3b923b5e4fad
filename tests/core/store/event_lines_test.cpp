#include "core/store/event_lines.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::store {
namespace {

using tests::TemporaryFolder;

TEST_CASE("event lines are complete lines with their place and a torn tail is left", "[store]") {
  TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "one\n\nthree\nto");
  EventLines lines(file, 0);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "one");
  REQUIRE(lines.line_offset() == 0);
  REQUIRE(lines.next_offset() == 4);
  REQUIRE(lines.next());
  REQUIRE(lines.line().empty());
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "three");
  REQUIRE(lines.line_offset() == 5);
  REQUIRE_FALSE(lines.next());
  REQUIRE(lines.next_offset() == 11);
}

TEST_CASE("event lines go on from an offset once the torn tail is whole", "[store]") {
  TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "one\ntwo\nthree\n");
  EventLines lines(file, 4);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "two");
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "three");
  REQUIRE_FALSE(lines.next());
  REQUIRE(lines.next_offset() == 14);
}

TEST_CASE("an event log that is not there has no lines", "[store]") {
  TemporaryFolder folder;
  EventLines lines(folder / "none", 0);
  REQUIRE_FALSE(lines.next());
  REQUIRE(lines.next_offset() == 0);
}

TEST_CASE("an endless event line is passed over without being kept", "[store]") {
  TemporaryFolder folder;
  const std::string endless(EventLines::max_line_bytes + 1, 'x');
  const auto file = folder.write("events.jsonl", endless + "\nshort\n");
  EventLines lines(file, 0);
  REQUIRE(lines.next());
  REQUIRE(lines.too_long());
  REQUIRE(lines.line().empty());
  REQUIRE(lines.next());
  REQUIRE_FALSE(lines.too_long());
  REQUIRE(lines.line() == "short");
}

TEST_CASE("event lines longer than the buffer are read whole", "[store]") {
  TemporaryFolder folder;
  const std::string text(700'000, 'y');
  EventLines lines(folder.write("events.jsonl", text + "\n" + text + "z\n"), 0);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == text);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == text + "z");
  REQUIRE_FALSE(lines.next());
}

}  // namespace
}  // namespace forge::store
