#include "core/queue/queue.h"

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::queue {
namespace {

using tests::error_of;
using tests::TemporaryFolder;

Entry entry(const std::string& run, int priority, int64_t position) {
  Entry entry;
  entry.run = run;
  entry.group = "2026-11-21T10:00:00.000Z-7";
  entry.submitted = "2026-11-21T10:00:00.000Z";
  entry.priority = priority;
  entry.position = position;
  entry.host = "here";
  entry.devices = {{"cuda:0", 24}, {"cuda:1", 24}};
  entry.units = 12;
  entry.jobs = 4;
  entry.fail_fast = true;
  return entry;
}

std::vector<std::string> runs(const std::vector<Entry>& entries) {
  std::vector<std::string> runs;
  for (const Entry& entry : entries) runs.push_back(entry.run);
  return runs;
}

TEST_CASE("an entry is written and read as it is", "[queue]") {
  Entry before = entry("a", -3, 5);
  before.starts = 2;
  before.attempt = 7;
  const Entry after = entry_from_json(to_json(before));
  REQUIRE(to_json(after) == to_json(before));
  REQUIRE(after.priority == -3);
  REQUIRE(after.devices.size() == 2);
  REQUIRE(after.devices[1].name == "cuda:1");
  REQUIRE(after.fail_fast);
}

TEST_CASE("a damaged entry is named by its field", "[queue]") {
  nlohmann::json json = to_json(entry("a", 0, 0));
  json["units"] = "many";
  REQUIRE(error_of([&] { entry_from_json(json); }).find("'units'") != std::string::npos);
}

TEST_CASE("larger priorities come first, then earlier commands, then the order of a command",
          "[queue]") {
  TemporaryFolder folder;
  Queue queue(folder.path());
  Entry late = entry("late", 0, 0);
  late.submitted = "2026-11-21T11:00:00.000Z";
  queue.add(late);
  queue.add(entry("second", 0, 1));
  queue.add(entry("first", 0, 0));
  Entry urgent = late;
  urgent.run = "urgent";
  urgent.priority = 1;
  queue.add(urgent);
  const std::vector<std::string> order = {"urgent", "first", "second", "late"};
  REQUIRE(runs(queue.entries()) == order);
  REQUIRE(runs(read_entries(folder.path())) == order);
}

TEST_CASE("a queue is on the disk, for the next process", "[queue]") {
  TemporaryFolder folder;
  Queue(folder.path()).add(entry("a", 0, 0));
  REQUIRE(is_queued(folder.path(), "a"));
  Queue queue(folder.path());
  REQUIRE(queue.find("a") != nullptr);
  queue.remove("a");
  REQUIRE(queue.find("a") == nullptr);
  REQUIRE_FALSE(is_queued(folder.path(), "a"));
  REQUIRE(read_entries(folder.path()).empty());
}

TEST_CASE("who asks for a run that waits already only raises its priority", "[queue]") {
  TemporaryFolder folder;
  Queue queue(folder.path());
  queue.add(entry("a", 2, 0));
  Entry again = entry("a", 1, 9);
  again.group = "another";
  queue.add(again);
  REQUIRE(queue.entries().size() == 1);
  REQUIRE(queue.find("a")->priority == 2);
  again.priority = 5;
  queue.add(again);
  REQUIRE(queue.find("a")->priority == 5);
  REQUIRE(queue.find("a")->position == 0);
}

TEST_CASE("damaged entries are named and do not hinder the others", "[queue]") {
  TemporaryFolder folder;
  Queue(folder.path()).add(entry("a", 0, 0));
  folder.write(".queue/entries/b", "{\"run\":");
  folder.write(".queue/entries/c", to_json(entry("other", 0, 0)).dump());
  folder.write(".queue/entries/a.tmp-17", "half");
  std::vector<std::string> problems;
  REQUIRE(runs(read_entries(folder.path(), &problems)) == std::vector<std::string>{"a"});
  REQUIRE(problems.size() == 2);
}

TEST_CASE("a runs folder without a queue has no entries", "[queue]") {
  TemporaryFolder folder;
  REQUIRE(read_entries(folder.path()).empty());
  REQUIRE_FALSE(is_queued(folder.path(), "a"));
}

}  // namespace
}  // namespace forge::queue
