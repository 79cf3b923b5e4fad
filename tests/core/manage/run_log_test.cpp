#include "core/manage/run_log.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>

#include "core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::manage {
namespace {

using namespace tests;
using Texts = std::vector<std::string>;

Texts kinds(const std::vector<LogLine>& entries) {
  Texts kinds;
  for (const LogLine& entry : entries) kinds.push_back(entry.kind);
  return kinds;
}

template <class Log>
std::vector<LogLine> new_lines(Log&& log) {
  std::vector<LogLine> entries;
  log.poll([&](const LogLine& entry) { entries.push_back(entry); });
  return entries;
}

void say(const run::RunFolder& folder, const std::string& prose) {
  std::ofstream(folder.stderr_file(), std::ios::app) << prose;
}

TEST_CASE("the worker's words stand where they were said", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  append_line(run,
              R"({"time":1,"attempt":1,"event":"attempt","pid":7,"host":"atlas","stderr_bytes":0})"
              "\n");
  append_line(
      run,
      R"({"time":2,"attempt":1,"event":"checkpoint","step":5,"path":"checkpoints/000000005",)"
      R"("bytes":2048,"stderr_bytes":4})"
      "\n");
  append_line(run,
              R"({"time":3,"attempt":1,"event":"ended","status":"failed","reason":"no luck"})"
              "\n");
  say(run, "one\ntwo\n");
  RunLog log(run, LogSource::all);
  const std::vector<LogLine> entries = new_lines(log);
  REQUIRE(kinds(entries) == Texts{"attempt", "worker", "checkpoint", "ended", "worker"});
  REQUIRE(entries[0].text == "attempt 1 on atlas, process 7");
  REQUIRE(entries[1].text == "one");
  REQUIRE(entries[2].text == "checkpoint of step 5, 2.00 KiB in checkpoints/000000005");
  REQUIRE(entries[3].text == "failed: no luck");
  REQUIRE(new_lines(log).empty());
}

TEST_CASE("lines of several processes say whose they are", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  append_line(run,
              R"({"time":1,"attempt":1,"event":"attempt","pid":7,"host":"atlas"})"
              "\n"
              R"({"time":2,"attempt":1,"event":"ended","status":"failed","reason":"no luck",)"
              R"("stderr_bytes":4,"other_stderr_bytes":[0,6]})"
              "\n");
  say(run, "one\ntwo\n");
  write_file_atomic(run.stderr_file(1), "late\n");
  write_file_atomic(run.stderr_file(2), "three\n");
  const std::vector<LogLine> entries = new_lines(RunLog(run, LogSource::all));
  Texts texts;
  for (const LogLine& entry : entries)
    texts.push_back(entry.text + (entry.rank ? " " + std::to_string(*entry.rank) : ""));
  REQUIRE(texts == Texts{"attempt 1 on atlas, process 7",
                         "one 0",
                         "three 2",
                         "failed: no luck",
                         "two 0",
                         "late 1"});
  REQUIRE(to_json(entries[2]).at("rank") == 2);
  REQUIRE_FALSE(to_json(entries[0]).contains("rank"));
}

TEST_CASE("memory that ran out and waits for a retry are told", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  append_event(run, worker::MicroBatch{7, "train", 4, 16, "out of memory"});
  append_line(run,
              R"({"time":3,"attempt":1,"event":"ended","status":"failed","reason":"no luck",)"
              R"("retry":true,"wait_seconds":10})"
              "\n");
  append_event(run, worker::Started{1000, 7, 20, 512, 4});
  const std::vector<LogLine> entries = new_lines(RunLog(run, LogSource::all));
  REQUIRE(kinds(entries) == Texts{"micro_batch", "ended", "started"});
  REQUIRE(entries[0].text ==
          "memory ran out after step 7: train computes 4 of 16 rows a micro-batch from now on");
  REQUIRE(entries[1].text == "failed: no luck; trying again in 10s");
  REQUIRE(entries[2].text ==
          "going on after step 7: 20 steps of 512 tokens, 1,000 parameters, 4 rows a micro-batch");
}

TEST_CASE("what comes later is told once and half a line not at all", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  RunLog log(run, LogSource::all);
  REQUIRE(new_lines(log).empty());
  say(run, "half");
  REQUIRE(new_lines(log).empty());
  say(run, " a line\nnext");
  const std::vector<LogLine> entries = new_lines(log);
  REQUIRE(entries.size() == 1);
  REQUIRE(entries[0].text == "half a line");
  append_attempt(run, 2);
  REQUIRE(kinds(new_lines(log)) == Texts{"attempt"});
}

TEST_CASE("of training metrics about twenty are told and the last", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  worker::Started started;
  started.max_steps = 1000;
  append_event(run, started);
  for (int64_t step = 1; step <= 1000; ++step) append_event(run, metrics_at(step));
  RunLog all(run, LogSource::all);
  const std::vector<LogLine> entries = new_lines(all);
  REQUIRE(entries.size() > 15);
  REQUIRE(entries.size() < 25);
  REQUIRE(contains(entries.back().text, "step 1000  loss"));
  RunLog events(run, LogSource::events);
  REQUIRE(new_lines(events).size() == 1001);
}

/// Bytes that this process holds on the heap.
size_t held_bytes() {
  const struct mallinfo2 held = ::mallinfo2();
  return held.uordblks + held.hblkhd;
}

TEST_CASE("a long log is told without being held", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  std::string lines, prose;
  for (int i = 0; i < 10'000; ++i) {
    lines += R"({"time":1,"attempt":1,"event":"ended","status":"failed","reason":"no luck"})"
             "\n";
    prose += "the worker said something, and said it again and again and again\n";
  }
  append_line(run, lines);
  say(run, prose);
  for (const LogSource source : {LogSource::all, LogSource::events, LogSource::worker}) {
    RunLog log(run, source);
    const size_t before = held_bytes();
    size_t most = 0, count = 0;
    log.poll([&](const LogLine&) {
      if (++count % 1'000 == 0) most = std::max(most, held_bytes());
    });
    REQUIRE(count == (source == LogSource::all ? 20'000 : 10'000));
    REQUIRE(most < before + (size_t{1} << 20));
  }
}

TEST_CASE("a damaged line and a worker's control characters do no harm", "[upkeep][log]") {
  const TemporaryFolder folder;
  const run::RunFolder run = make_queued_run(folder.path(), {});
  append_line(run, "rubbish\n");
  say(run, "a\x1b[2Jb\n");
  RunLog log(run, LogSource::all);
  const std::vector<LogLine> entries = new_lines(log);
  REQUIRE(kinds(entries) == Texts{"damaged", "worker"});
  REQUIRE(entries[1].text.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace forge::manage
