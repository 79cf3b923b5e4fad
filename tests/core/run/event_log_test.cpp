#include <fstream>

#include "core/base/files.h"
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
  log.append(worker::to_json(worker::Evaluation{10, 2.5, 100, 0.5}), 3);
  log.append({{"event", "ended"}, {"status", "failed"}}, 3);
  log.append({{"event", "of a newer forge"}}, 4);
  log.sync();

  const auto events = read_events(folder / "events.jsonl");
  REQUIRE(events.size() == 3);
  REQUIRE(std::get<worker::Evaluation>(*events[0].event).loss == 2.5);
  REQUIRE(events[0].attempt == 3);
  REQUIRE(events[1].name == "ended");
  REQUIRE_FALSE(events[1].event.has_value());
  REQUIRE(events[1].json.at("status") == "failed");
  REQUIRE(events[2].name == "of a newer forge");
  REQUIRE(EventLog(folder / "events.jsonl").last_attempt() == 4);
}

TEST_CASE("event lines are complete lines with their place and a torn tail is left", "[run]") {
  TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "one\n\nthree\nto");
  LineReader lines(file, 0);
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

TEST_CASE("event lines go on from an offset once the torn tail is whole", "[run]") {
  TemporaryFolder folder;
  const auto file = folder.write("events.jsonl", "one\ntwo\nthree\n");
  LineReader lines(file, 4);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "two");
  REQUIRE(lines.next());
  REQUIRE(lines.line() == "three");
  REQUIRE_FALSE(lines.next());
  REQUIRE(lines.next_offset() == 14);
}

TEST_CASE("an event log that is not there has no lines", "[run]") {
  TemporaryFolder folder;
  LineReader lines(folder / "none", 0);
  REQUIRE_FALSE(lines.next());
  REQUIRE(lines.next_offset() == 0);
}

TEST_CASE("an endless event line is passed over without being kept", "[run]") {
  TemporaryFolder folder;
  const std::string endless(LineReader::max_line_bytes + 1, 'x');
  const auto file = folder.write("events.jsonl", endless + "\nshort\n");
  LineReader lines(file, 0);
  REQUIRE(lines.next());
  REQUIRE(lines.too_long());
  REQUIRE(lines.line().empty());
  REQUIRE(lines.next());
  REQUIRE_FALSE(lines.too_long());
  REQUIRE(lines.line() == "short");
}

TEST_CASE("event lines longer than the buffer are read whole", "[run]") {
  TemporaryFolder folder;
  const std::string text(700'000, 'y');
  LineReader lines(folder.write("events.jsonl", text + "\n" + text + "z\n"), 0);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == text);
  REQUIRE(lines.next());
  REQUIRE(lines.line() == text + "z");
  REQUIRE_FALSE(lines.next());
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

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

TEST_CASE("a line with a number that cannot be is damage", "[run][event_log]") {
  const TemporaryFolder folder;
  const std::string head = R"({"attempt":1,"time":1.5,)";
  const std::string train =
      R"("event":"train","step":1,"tokens":8,"loss":2,"learning_rate":1,"gradient_norm":1,)"
      R"("tokens_per_second":1e300,"elapsed_seconds":1})";
  const std::string evaluation =
      R"("event":"evaluation","step":1,"loss":-2,"tokens":8,"seconds":1})";
  const auto file = folder.write("a", head + train + "\n" + head + evaluation + "\n");
  const EventBatch batch = read_event_lines(file, 0);
  REQUIRE(batch.lines.size() == 2);
  CHECK_FALSE(batch.lines[0].event);
  CHECK(contains(batch.lines[0].problem, "'tokens_per_second' is impossible: 1e+300"));
  CHECK_FALSE(batch.lines[1].event);
  CHECK(contains(batch.lines[1].problem, "'loss' is negative: -2"));
  CHECK(contains(error_of([&] { read_events(file); }), "a:1: 'tokens_per_second' is impossible"));
}

TEST_CASE("a damaged last line does not keep a run from going on", "[run][event_log][hostile]") {
  const TemporaryFolder folder;
  const fs::path file = folder / "events.jsonl";
  EventLog(file).append({{"event", "ended"}, {"status", "failed"}}, 3);
  std::ofstream(file, std::ios::app) << "\x1b{ no event\n";
  EventLog log(file);
  REQUIRE(log.last_attempt() == 3);
  log.append(AttemptEnded{RunState::completed}, 4);
  const EventBatch batch = read_event_lines(file, 0);
  REQUIRE(batch.lines.size() == 3);
  REQUIRE_FALSE(batch.lines[1].event.has_value());
  REQUIRE(batch.lines[2].event->attempt == 4);
}

TEST_CASE("event lines come in batches that join without a gap", "[run][event_log]") {
  const TemporaryFolder folder;
  const std::string line = R"({"attempt":1,"event":"attempt","time":1.5})"
                           "\n";
  const auto size = static_cast<int64_t>(line.size());
  const fs::path file = folder.write("a", line + line + line);
  const EventBatch first = read_event_lines(file, 0, size + 1);
  REQUIRE(first.lines.size() == 2);
  REQUIRE_FALSE(first.whole);
  const EventBatch second = read_event_lines(file, first.end, size + 1);
  REQUIRE(second.lines.size() == 1);
  REQUIRE(second.lines[0].offset == 2 * size);
  REQUIRE(second.whole);
  REQUIRE(second.end == 3 * size);
}

TEST_CASE("a follower yields each event once and waits for the end of a line", "[run][follow]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  auto lock = FileLock::try_acquire(run.lock_file());
  Follower follower(run);
  REQUIRE(follower.poll().events.empty());

  EventLog log(run.events_file());
  log.append({{"event", "attempt"}}, 1);
  log.append(worker::to_json(worker::Evaluation{10, 2.5, 100, 0.5}), 1);
  Update update = follower.poll();
  REQUIRE_FALSE(update.over);
  REQUIRE(update.events.size() == 2);
  REQUIRE(update.events[0].name == "attempt");
  REQUIRE(std::get<worker::Evaluation>(*update.events[1].event).step == 10);
  REQUIRE(follower.poll().events.empty());

  std::ofstream(run.events_file(), std::ios::app) << R"({"attempt":1,"event":"en)" << std::flush;
  REQUIRE(follower.poll().events.empty());
  std::ofstream(run.events_file(), std::ios::app) << R"(ded","status":"completed","time":3})"
                                                  << "\n"
                                                  << std::flush;
  lock.reset();
  update = follower.poll();
  REQUIRE(update.over);
  REQUIRE(update.events.size() == 1);
  REQUIRE(update.events[0].name == "ended");
}

TEST_CASE("a follower can begin at the end", "[run][follow]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  EventLog log(run.events_file());
  log.append({{"event", "attempt"}}, 1);
  Follower follower(run);
  follower.skip_to_end();
  log.append({{"event", "ended"}, {"status", "completed"}}, 1);
  const Update update = follower.poll();
  REQUIRE(update.events.size() == 1);
  REQUIRE(update.events[0].name == "ended");
}

TEST_CASE("a follower of a long run reads it piece by piece", "[run][follow]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  const std::string line =
      worker::to_line(stamped(worker::to_json(worker::TrainMetrics()), 1)) + "\n";
  const size_t lines = size_t(Follower::max_poll_bytes) / line.size() + 2;
  std::ofstream file(run.events_file());
  for (size_t i = 0; i < lines; ++i) file << line;
  file.close();
  Follower follower(run);
  Update update = follower.poll();
  REQUIRE_FALSE(update.over);  // though nobody supervises it
  const size_t first = update.events.size();
  REQUIRE(first < lines);
  update = follower.poll();
  REQUIRE(update.over);
  REQUIRE(first + update.events.size() == lines);
}

TEST_CASE("a follower shows progress when it is new", "[run][follow]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  const auto show = [&](int step) {
    const auto json = stamped(worker::to_json(worker::Progress{step, "train", 0}), 1);
    write_file_atomic(run.progress_file(), worker::to_line(json) + "\n");
  };
  Follower follower(run);
  REQUIRE_FALSE(follower.poll().progress.has_value());
  show(7);
  REQUIRE(follower.poll().progress->step == 7);
  REQUIRE_FALSE(follower.poll().progress.has_value());
  show(8);
  REQUIRE(follower.poll().progress->step == 8);
}

TEST_CASE("a follower passes over a damaged line", "[run][follow][hostile]") {
  const TemporaryFolder runs;
  const RunFolder run = tests::new_run(runs.path());
  std::ofstream(run.events_file()) << "rubbish\n";
  EventLog(run.events_file()).append({{"event", "ended"}, {"status", "failed"}}, 1);
  std::ofstream(run.progress_file()) << "rubbish\n";
  const Update update = Follower(run).poll();
  REQUIRE(update.events.size() == 1);
  REQUIRE(update.events[0].name == "ended");
  REQUIRE_FALSE(update.progress.has_value());
}

TEST_CASE("the time that is left counts down between reports and does not ask who looks when",
          "[run][event_log]") {
  const auto trained = [](int64_t step) {
    worker::TrainMetrics metrics;
    metrics.step = step;
    return metrics;
  };
  Pace pace;
  REQUIRE_FALSE(pace.seconds_left(1000));
  worker::Started started;
  started.first_step = 100;
  started.max_steps = 300;
  pace.take(started, 0);
  REQUIRE_FALSE(pace.seconds_left(900));
  pace.take(trained(101), 1000.5);  // the first step waited for a compiler
  REQUIRE_FALSE(pace.seconds_left(1000.5));
  pace.take(trained(120), 1010);  // two steps a second
  REQUIRE(pace.fraction() == 0.4);
  REQUIRE(pace.seconds_left(1010) == 90.0);
  REQUIRE(pace.seconds_left(1040) == 60.0);
  REQUIRE(pace.seconds_left(2000) == 0.0);
  pace.take(worker::Progress{110, "evaluate", 0.5}, 1020);  // older than what is known
  REQUIRE(pace.step() == 120);
  pace.take(worker::Progress{200, "train", 0}, 1050);
  REQUIRE(pace.seconds_left(1050) == 50.0);
}

}  // namespace
}  // namespace forge::run
