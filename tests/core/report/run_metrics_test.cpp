#include "core/report/run_metrics.h"

#include <cmath>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::report {
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
  for (const Metric& metric : run.metrics) names.push_back(metric.name);
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
  for (const Metric& metric : run.metrics)
    if (metric.name == "train_loss") losses.emplace_back(metric.step, metric.value);
  REQUIRE(losses == std::vector<std::pair<int64_t, double>>{{10, 4}, {20, 2.5}});
  std::vector<std::pair<int64_t, double>> evaluations;
  std::vector<double> seconds;
  for (const Metric& metric : run.metrics) {
    if (metric.name != "eval_loss") continue;
    evaluations.emplace_back(metric.step, metric.value);
    seconds.push_back(metric.wall_seconds);
  }
  REQUIRE(evaluations == std::vector<std::pair<int64_t, double>>{{0, 9}, {10, 3.8}});
  // The clock stands still between the attempts: it goes on from that of step 10, 2 s.
  REQUIRE(seconds == std::vector<double>{0.5, 3});
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
  REQUIRE(contains(to_metrics_csv(metrics), ",train_loss,nan\r\n"));
}

TEST_CASE("a run without figures has no metrics", "[run_metrics]") {
  const tests::TemporaryFolder folder;
  REQUIRE(read_run_metrics(run_of(folder, {})).metrics.empty());
  const run::RunFolder run = run_of(folder, {started(1000, 0)});
  REQUIRE(read_run_metrics(run).metrics.empty());
  write_file_atomic(run.config_file(), "[]");
  REQUIRE(contains(tests::error_of([&] { read_run_metrics(run); }), "names no seed"));
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
  REQUIRE(to_metrics_csv(run) ==
          "train_llama-1,\"copy/a,b\",7,10,320,2.0,1002500,train_loss,0.1\r\n"
          "train_llama-1,\"copy/a,b\",7,10,,3.0,1003500,\"odd \"\"name\"\"\",1e-05\r\n");
}

}  // namespace
}  // namespace forge::report
