#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/results/tables/run_metrics.h"
#include "core/run/event_log.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::tables {
namespace {

using tests::contains;

const char* const beginning = "{\"attempt\":1,\"event\":";

/// A run whose events these lines are.
run::RunFolder run_of(const tests::TemporaryFolder& folder, const std::vector<std::string>& lines) {
  tests::MadeRun made;
  made.id = "train_llama-1";
  made.experiment.seed = 7;
  run::RunFolder run = tests::make_queued_run(folder.path(), made);
  for (const std::string& line : lines) tests::append_line(run, line + "\n");
  return run;
}

std::string started(double time, int64_t first_step) {
  return beginning + ("\"started\",\"time\":" + shortest(time)) +
         ",\"parameters\":10,\"first_step\":" + std::to_string(first_step) +
         ",\"max_steps\":100,\"tokens_per_step\":32}";
}

std::string trained(double time, int64_t step, const std::string& loss, double elapsed) {
  return beginning + ("\"train\",\"time\":" + shortest(time)) +
         ",\"step\":" + std::to_string(step) + ",\"tokens\":" + std::to_string(step * 32) +
         ",\"loss\":" + loss +
         ",\"learning_rate\":0.001,\"gradient_norm\":0.5,\"tokens_per_second\":4000,"
         "\"elapsed_seconds\":" +
         shortest(elapsed) + "}";
}

std::string evaluated(double time, int64_t step, double loss) {
  return beginning + ("\"evaluation\",\"time\":" + shortest(time)) +
         ",\"step\":" + std::to_string(step) + ",\"loss\":" + shortest(loss) +
         ",\"tokens\":100,\"seconds\":1,"
         "\"scores\":{\"answer_accuracy.hop_8\":{\"value\":0.25,\"count\":8}}}";
}

TEST_CASE("a run's metrics come from its events", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  const RunMetrics run = read_run_metrics(run_of(
      folder, {started(1000, 0), trained(1002.5, 10, "3.5", 2), evaluated(1003.5, 10, 3.25)}));
  REQUIRE(run.run_id == "train_llama-1");
  REQUIRE(run.config == "train_llama");
  REQUIRE(run.seed == 7);
  REQUIRE(run.warnings.empty());
  std::vector<std::string> names;
  for (const MetricPoint& metric : run.metrics) names.push_back(metric.name);
  REQUIRE(names == std::vector<std::string>{"train_loss",
                                            "learning_rate",
                                            "gradient_norm",
                                            "tokens_per_second",
                                            "eval_loss",
                                            "answer_accuracy.hop_8"});
  REQUIRE(run.metrics[0].value == 3.5);
  REQUIRE(run.metrics[0].wall_seconds == 2);
  REQUIRE(run.metrics[0].time == 1002.5);
  REQUIRE(run.metrics[0].tokens == 320);
  // Evaluations say neither tokens nor how long training has gone on: one second after the step.
  REQUIRE(run.metrics[4].value == 3.25);
  REQUIRE(run.metrics[4].tokens == 320);
  REQUIRE(run.metrics[4].wall_seconds == 3);
  REQUIRE(run.metrics[5].value == 0.25);
}

TEST_CASE("of steps that were done twice the last time counts", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  const RunMetrics run = read_run_metrics(run_of(folder,
                                                 {started(1000, 0),
                                                  evaluated(1000.5, 0, 9),
                                                  trained(1001, 10, "4", 1),
                                                  evaluated(1002, 10, 3.9),
                                                  trained(1003, 20, "3", 3),
                                                  trained(1004, 30, "2", 4),
                                                  evaluated(1005, 30, 1.9),
                                                  started(2000, 10),
                                                  evaluated(2001, 10, 3.8),
                                                  trained(2002, 20, "2.5", 4)}));
  std::vector<std::pair<int64_t, double>> losses;
  for (const MetricPoint& metric : run.metrics)
    if (metric.name == "train_loss") losses.emplace_back(metric.step, metric.value);
  REQUIRE(losses == std::vector<std::pair<int64_t, double>>{{10, 4}, {20, 2.5}});
  std::vector<std::pair<int64_t, double>> evaluations;
  std::vector<double> seconds;
  for (const MetricPoint& metric : run.metrics) {
    if (metric.name != "eval_loss") continue;
    evaluations.emplace_back(metric.step, metric.value);
    seconds.push_back(metric.wall_seconds);
  }
  REQUIRE(evaluations == std::vector<std::pair<int64_t, double>>{{0, 9}, {10, 3.8}});
  // The clock stands still between the attempts: it goes on from that of step 10, 2 s.
  REQUIRE(seconds == std::vector<double>{0.5, 3});
}

/// A line of a run's log as one that continues it has it.
std::string taken_over(const std::string& line) {
  return run::taken_over_line(run::stored_event_from_line(line));
}

TEST_CASE("a run that continues others goes on with their clock", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  std::vector<std::string> lines;
  // Two runs before this one, a day apart each; of the first, step 10 was trained twice.
  for (const std::string& line : {started(1000, 0),
                                  evaluated(1002, 10, 9),
                                  evaluated(1004, 20, 8),
                                  started(1500, 0),
                                  evaluated(1501, 10, 3.9),
                                  started(90'000, 10),
                                  evaluated(90'002, 20, 3.8),
                                  trained(90'003, 25, "3", 5)}) {
    const std::string kept = taken_over(line);
    lines.push_back(kept.substr(0, kept.size() - 1));
  }
  lines.push_back(started(180'000, 25));
  lines.push_back(evaluated(180'002, 30, 3.7));
  std::vector<int64_t> steps;
  std::vector<double> seconds, losses;
  for (const MetricPoint& metric : read_run_metrics(run_of(folder, lines)).metrics) {
    if (metric.name != "eval_loss") continue;
    CHECK(metric.tokens == metric.step * 32);
    steps.push_back(metric.step);
    seconds.push_back(metric.wall_seconds);
    losses.push_back(metric.value);
  }
  CHECK(steps == std::vector<int64_t>{10, 20, 30});
  CHECK(seconds == std::vector<double>{1, 3, 7});
  CHECK(losses == std::vector<double>{3.9, 3.8, 3.7});
}

TEST_CASE("steps out of order are put in order", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  const RunMetrics run = read_run_metrics(run_of(folder,
                                                 {started(1000, 0),
                                                  trained(1003, 30, "3", 3),
                                                  trained(1001, 10, "1", 1),
                                                  trained(1002, 20, "2", 2),
                                                  trained(1004, 20, "2.5", 4)}));
  std::vector<double> losses;
  for (const MetricPoint& metric : run.metrics)
    if (metric.name == "train_loss") losses.push_back(metric.value);
  REQUIRE(losses == std::vector<double>{1, 2.5, 3});
}

/// Bytes that this process holds on the heap.
size_t held_bytes() {
  const struct mallinfo2 held = ::mallinfo2();
  return held.uordblks + held.hblkhd;
}

TEST_CASE("the metrics of a long run are told without being held", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  const run::RunFolder run = run_of(folder, {started(1000, 0)});
  std::string lines;
  for (int64_t attempt = 0; attempt < 2; ++attempt) {
    for (int64_t step = 1; step <= 10'000; ++step)
      lines += trained(1000, step + 5'000 * attempt, "0.25", double(step)) + "\n";
    if (attempt == 0) lines += started(1000, 5'000) + "\n";
  }
  tests::append_line(run, lines);
  const size_t before = held_bytes();
  size_t most = 0, count = 0;
  MetricSource(run).for_each([&](const MetricPoint&) {
    if (++count % 1'000 == 0) most = std::max(most, held_bytes());
  });
  REQUIRE(count == 15'000 * 4);
  REQUIRE(most < before + (size_t{1} << 20));
}

TEST_CASE("damaged lines are skipped and told", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  const run::RunFolder run =
      run_of(folder, {started(1000, 0), "rubbish", trained(1001, 10, "\"nan\"", 1)});
  const RunMetrics metrics = read_run_metrics(run);
  REQUIRE(metrics.warnings.size() == 1);
  REQUIRE(contains(metrics.warnings[0], "the line is skipped"));
  REQUIRE(metrics.metrics.size() == 4);
  REQUIRE(std::isnan(metrics.metrics[0].value));
  REQUIRE(contains(metrics_csv_line(metrics, metrics.metrics[0]), ",train_loss,nan\r\n"));
}

TEST_CASE("a run without metrics has no metrics", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  REQUIRE(read_run_metrics(run_of(folder, {})).metrics.empty());
  const run::RunFolder run = run_of(folder, {started(1000, 0)});
  REQUIRE(read_run_metrics(run).metrics.empty());
  write_file_atomic(run.config_file(), "{}");
  REQUIRE(contains(tests::error_of([&] { read_run_metrics(run); }), "is not the config"));
  write_file_atomic(run.config_file(), "[]");
  REQUIRE(contains(tests::error_of([&] { read_run_metrics(run); }), "is not a JSON object"));
}

TEST_CASE("metrics as lines of CSV", "[run_metrics]") {
  RunMetrics run;
  run.run_id = "train_llama-1";
  run.config = "copy/a,b";
  run.seed = 7;
  run.metrics = {{"train_loss", 10, 320, 2.00049, 1002.5, 0.1},
                 {"odd \"name\"", 10, std::nullopt, 3, 1003.5, 1e-5}};
  REQUIRE(metrics_csv_header() ==
          "run_id,config,seed,step,tokens,wall_seconds,timestamp_ms,metric,value\r\n");
  REQUIRE(metrics_csv_line(run, run.metrics[0]) + metrics_csv_line(run, run.metrics[1]) ==
          "train_llama-1,\"copy/a,b\",7,10,320,2.0,1002500,train_loss,0.1\r\n"
          "train_llama-1,\"copy/a,b\",7,10,,3.0,1003500,\"odd \"\"name\"\"\",1e-05\r\n");
}

template <class Value>
Value read_as(std::string_view bytes, size_t at) {
  REQUIRE(at + sizeof(Value) <= bytes.size());
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint32_t unmasked(uint32_t crc) {
  const uint32_t turned = crc - 0xa282ead8;
  return (turned >> 17) | (turned << 15);
}

/// What records hold, with their checksums checked.
std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const auto length = read_as<uint64_t>(file, 0);
    REQUIRE(unmasked(read_as<uint32_t>(file, 8)) == crc32c(file.substr(0, 8)));
    REQUIRE(length + 16 <= file.size());
    const std::string_view bytes = file.substr(12, length);
    REQUIRE(unmasked(read_as<uint32_t>(file, 12 + length)) == crc32c(bytes));
    records.emplace_back(bytes);
    file.remove_prefix(length + 16);
  }
  return records;
}

/// A field of a protobuf message: its bytes, or those of its number.
struct Field {
  int number = 0;
  std::string bytes;
};

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE_FALSE(bytes.empty());
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields_of(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const uint64_t tag = take_varint(bytes);
    size_t size = 8;
    if ((tag & 7) == 5) size = 4;
    if ((tag & 7) == 2) size = take_varint(bytes);
    if ((tag & 7) == 0) {
      const uint64_t value = take_varint(bytes);
      fields.push_back({static_cast<int>(tag >> 3), std::string(8, '\0')});
      std::memcpy(fields.back().bytes.data(), &value, 8);
      continue;
    }
    fields.push_back({static_cast<int>(tag >> 3), std::string(bytes.substr(0, size))});
    bytes.remove_prefix(size);
  }
  return fields;
}

TEST_CASE("CRC-32C of known bytes", "[tensorboard]") {
  // RFC 3720, B.4.
  REQUIRE(crc32c("123456789") == 0xe3069283);
  REQUIRE(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  REQUIRE(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  REQUIRE(crc32c("") == 0);
}

std::string event_file(const RunMetrics& run) {
  std::string file = tensorboard_beginning(run.metrics.front());
  for (const MetricPoint& metric : run.metrics) file += tensorboard_scalar(metric);
  return file;
}

TEST_CASE("an event file begins as TensorFlow's do", "[tensorboard]") {
  // Length 24 with its checksum, then wall_time, then file_version: the same in every event file.
  RunMetrics run;
  run.metrics = {{"x", 1, 1, 1, 1700000000.5, 1}};
  const std::string file = event_file(run);
  REQUIRE(file.substr(0, 12) == std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"", 12));
  REQUIRE(file.substr(12, 1) == "\x09");
  REQUIRE(read_as<double>(file, 13) == 1700000000.5);
  REQUIRE(file.substr(21, 15) ==
          "\x1a\x0d"
          "brain.Event:2");
}

TEST_CASE("what is written is read back", "[tensorboard]") {
  RunMetrics run;
  run.metrics = {{"train_loss", 10, 320, 2, 1700000001.25, 3.5},
                 {"answer_accuracy.hop_8", 3000000000, 320, 2, 1700000002, 0.1},
                 {"eval_loss", 0, 0, 2, 1700000003, std::nan("")}};
  const std::vector<std::string> records = records_of(event_file(run));
  REQUIRE(records.size() == 4);
  for (size_t i = 0; i < run.metrics.size(); ++i) {
    const std::vector<Field> event = fields_of(records[i + 1]);
    REQUIRE(event.size() == 3);
    REQUIRE(event[0].number == 1);
    REQUIRE(read_as<double>(event[0].bytes, 0) == run.metrics[i].time);
    REQUIRE(event[1].number == 2);
    REQUIRE(read_as<int64_t>(event[1].bytes, 0) == run.metrics[i].step);
    REQUIRE(event[2].number == 5);
    const std::vector<Field> summary = fields_of(event[2].bytes);
    REQUIRE(summary.size() == 1);
    REQUIRE(summary[0].number == 1);
    const std::vector<Field> value = fields_of(summary[0].bytes);
    REQUIRE(value.size() == 2);
    REQUIRE(value[0].number == 1);
    REQUIRE(value[0].bytes == run.metrics[i].name);
    REQUIRE(value[1].number == 2);
    const auto number = read_as<float>(value[1].bytes, 0);
    if (std::isnan(run.metrics[i].value)) {
      REQUIRE(std::isnan(number));
    } else {
      REQUIRE(number == static_cast<float>(run.metrics[i].value));
    }
  }
}

TEST_CASE("a restart tells TensorBoard to forget what it has from a step on", "[tensorboard]") {
  // purge_orphaned_data of its event_accumulator.py: session_log (7) with status (1) START (1).
  const std::vector<std::string> records = records_of(tensorboard_restart(1700000001.25, 41));
  REQUIRE(records.size() == 1);
  const std::vector<Field> event = fields_of(records[0]);
  REQUIRE(event.size() == 3);
  REQUIRE(read_as<double>(event[0].bytes, 0) == 1700000001.25);
  REQUIRE(event[1].number == 2);
  REQUIRE(read_as<int64_t>(event[1].bytes, 0) == 41);
  REQUIRE(event[2].number == 7);
  const std::vector<Field> session = fields_of(event[2].bytes);
  REQUIRE(session.size() == 1);
  REQUIRE(session[0].number == 1);
  REQUIRE(read_as<int64_t>(session[0].bytes, 0) == 1);
}

TEST_CASE("an event has the metrics that its run is told to have", "[tensorboard]") {
  worker::Evaluation evaluation;
  evaluation.step = 10;
  evaluation.loss = 2.5;
  evaluation.scores["accuracy"] = {0.5, 4};
  const std::vector<MetricPoint> metrics = metrics_of_event(evaluation, 1700000001);
  REQUIRE(metrics.size() == 2);
  REQUIRE(metrics[0].name == "eval_loss");
  REQUIRE(metrics[0].value == 2.5);
  REQUIRE(metrics[1].name == "accuracy");
  REQUIRE(metrics[1].step == 10);
  REQUIRE(metrics[1].time == 1700000001);
  REQUIRE(metrics[1].wall_seconds == 0);
  REQUIRE(metrics_of_event(worker::Started{}, 1).empty());
}

TEST_CASE("the same run has the same bytes and name", "[tensorboard]") {
  RunMetrics run;
  run.metrics = {{"x", 1, 1, 1, 1700000000.75, 1}};
  REQUIRE(event_file(run) == event_file(run));
  REQUIRE(tensorboard_file_name(run.metrics[0]) == "events.out.tfevents.1700000000.forge");
}

}  // namespace
}  // namespace forge::tables
