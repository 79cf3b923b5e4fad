#include "core/run/event_log.h"

#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

TEST_CASE("events are stored with time and attempt and read back typed", "[run][event_log]") {
  const TemporaryFolder folder;
  EventLog log(folder / "events.jsonl");
  REQUIRE(log.last_attempt() == 0);
  log.append(protocol::to_json(protocol::Evaluation{10, 2.5, 100, 0.5}), 3);
  log.append({{"event", "ended"}, {"status", "failed"}}, 3);
  log.append({{"event", "of a newer forge"}}, 4);
  log.sync();

  const auto events = read_events(folder / "events.jsonl");
  REQUIRE(events.size() == 3);
  REQUIRE(std::get<protocol::Evaluation>(*events[0].event).loss == 2.5);
  REQUIRE(events[0].attempt == 3);
  REQUIRE(events[1].name == "ended");
  REQUIRE_FALSE(events[1].event.has_value());
  REQUIRE(events[1].json.at("status") == "failed");
  REQUIRE(events[2].name == "of a newer forge");
  REQUIRE(EventLog(folder / "events.jsonl").last_attempt() == 4);
}

TEST_CASE("reading leaves a torn tail out and names the place of damage", "[run][event_log]") {
  const TemporaryFolder folder;
  const std::string good = R"({"attempt":1,"event":"attempt","time":1.5})";
  REQUIRE(read_events(folder / "missing").empty());
  REQUIRE(read_events(folder.write("a", good + "\n{\"att")).size() == 1);
  const std::string message =
      error_of([&] { read_events(folder.write("b", good + "\nrubbish\n" + good + "\n")); });
  REQUIRE(contains(message, "b:2: "));
  REQUIRE(contains(message, "'rubbish'"));
  REQUIRE(contains(error_of([] { stored_event_from_line(R"({"event":"x","attempt":1})"); }),
                   "'time' is missing"));
}

}  // namespace
}  // namespace forge::run
