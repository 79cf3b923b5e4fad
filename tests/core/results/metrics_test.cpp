#include <cmath>
#include <limits>
#include <set>

#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/run_summary.h"
#include "tests/support/catch.h"

namespace forge::results {
namespace {

TEST_CASE("every metric is registered once and a worker's names are among them", "[report]") {
  std::set<std::string> names;
  for (const Metric& metric : metrics()) {
    CHECK(names.insert(metric.name).second);
    CHECK_FALSE(metric.title.empty());
  }
  worker::Evaluation evaluation;
  evaluation.validation_loss = 2;
  worker::Finished finished;
  finished.eval_loss = 2;
  const std::set<std::string> others = {"step", "tokens", "seconds", "elapsed_seconds"};
  for (const worker::Event& event : {worker::Event(worker::TrainMetrics()),
                                     worker::Event(evaluation),
                                     worker::Event(finished)}) {
    for (const auto& [name, value] : worker::metrics_of(event)) {
      INFO(name);
      CHECK((others.count(name) == 1 || find_metric(name)));
    }
  }
}

TEST_CASE("a part of a score has the properties of the whole", "[report]") {
  CHECK(metric_named("answer_accuracy.hop_8").higher_is_better());
  CHECK(metric_named("bits_per_parameter").higher_is_better());
  CHECK_FALSE(metric_named("kl_divergence").higher_is_better());
  CHECK(metric_named("tokens_per_second").is_timing);
  CHECK(metric_named("tokens_per_second").depends_on_device);
  CHECK_FALSE(metric_named("eval_loss").depends_on_device);
}

TEST_CASE("accuracies and validities are shares of cases and no other score is", "[report]") {
  CHECK(metric_named("token_accuracy").is_fraction());
  CHECK(metric_named("answer_accuracy.hop_8").is_fraction());
  CHECK(metric_named("sentence_validity").is_fraction());
  CHECK_FALSE(metric_named("kl_divergence").is_fraction());
  CHECK_FALSE(metric_named("bits_per_parameter").is_fraction());
  CHECK_FALSE(metric_named("loss.accuracy").is_fraction());
  CHECK_FALSE(metric_named("").is_fraction());
}

TEST_CASE("the headline is a score of the whole", "[report]") {
  CHECK(store::headline({}) == nullptr);
  CHECK(store::headline({{"answer_accuracy.hop_8", {0.5, 1}}}) == nullptr);
  const store::Scores scores = {{"answer_accuracy.hop_8", {0.5, 1}}, {"token_accuracy", {0.25, 2}}};
  CHECK(store::headline(scores)->first == "token_accuracy");
}

TEST_CASE("a figure is a score or the evaluation loss", "[report]") {
  store::RunSummary run;
  CHECK_FALSE(run.metric("eval_loss").has_value());
  run.metrics["eval_loss"] = 1.5;
  run.scores["token_accuracy"] = {0.25, 2};
  CHECK(run.metric("eval_loss") == 1.5);
  CHECK(run.metric("token_accuracy") == 0.25);
  CHECK_FALSE(run.metric("answer_accuracy").has_value());
}

TEST_CASE("the interval of a share is that of Wilson", "[report]") {
  // Newcombe, Statistics in Medicine 17 (1998) 857, table I: 81/263, 15/148, 0/20, 1/29.
  const auto check = [](double cases, int64_t count, double low, double high) {
    const statistics::Interval interval =
        statistics::wilson_interval(cases / static_cast<double>(count), count);
    CHECK(interval.low == Approx(low).margin(5e-5));
    CHECK(interval.high == Approx(high).margin(5e-5));
  };
  check(81, 263, 0.2553, 0.3662);
  check(15, 148, 0.0624, 0.1605);
  check(0, 20, 0, 0.1611);
  check(1, 29, 0.0061, 0.1718);
  CHECK(statistics::wilson_interval(1, 20).high == 1);
}

TEST_CASE("no number of cases makes an interval leave what a share can be", "[report]") {
  CHECK(statistics::wilson_interval(0.5, 0).low == 0);
  CHECK(statistics::wilson_interval(0.5, -3).high == 1);
  CHECK(std::isfinite(statistics::wilson_interval(1.5, 10).low));
  CHECK(statistics::wilson_interval(0.5, INT64_MAX).low == Approx(0.5));
}

TEST_CASE("losses have four decimals", "[report]") {
  REQUIRE(loss_text(1.30109) == "1.3011");
  REQUIRE(loss_text(12) == "12.0000");
  REQUIRE(loss_text(std::nan("")) == "nan");
  REQUIRE(loss_text(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("a number without end is printed with an exponent", "[report]") {
  CHECK(loss_text(1e300) == "1.0000e+300");
  CHECK(fixed_text(-1e300, 2) == "\u22121.00e+300");
  CHECK(percent_text(1e300) == "1.0e+302 %");
  CHECK(throughput_text(1e300) == "1.00e+294M");
  CHECK(loss_text(123456.5) == "123456.5000");
  for (const Metric& metric : metrics()) CHECK(text(1e300, metric).size() < 20);
}

TEST_CASE("a score is a percentage or has four decimals", "[report]") {
  REQUIRE(text(0.87549, metric_named("token_accuracy")) == "87.5 %");
  REQUIRE(text(1, metric_named("token_accuracy")) == "100.0 %");
  REQUIRE(text(1.30109, metric_named("kl_divergence")) == "1.3011");
  REQUIRE(text(std::nan(""), metric_named("token_accuracy")) == "nan");
}

TEST_CASE("throughput keeps three digits or four", "[report]") {
  REQUIRE(throughput_text(87.6) == "88");
  REQUIRE(throughput_text(4311.6) == "4,312");
  REQUIRE(throughput_text(9999.4) == "9,999");
  REQUIRE(throughput_text(9999.6) == "10.0K");
  REQUIRE(throughput_text(43111) == "43.1K");
  REQUIRE(throughput_text(99960) == "100K");
  REQUIRE(throughput_text(291000) == "291K");
  REQUIRE(throughput_text(999600) == "1.00M");
  REQUIRE(throughput_text(3310000) == "3.31M");
  REQUIRE(throughput_text(std::nan("")) == "nan");
  REQUIRE(throughput_text(1e308) == "1.00e+302M");
}

TEST_CASE("memory is given in binary units", "[report]") {
  REQUIRE(text(1.5 * (1 << 30), metric_named("peak_memory_bytes")) == "1.50 GiB");
  REQUIRE(text(512.0 * (1 << 20), metric_named("peak_memory_bytes")) == "512.00 MiB");
}

TEST_CASE("a value has as many decimals as tell it from a limit", "[report]") {
  const auto seconds = [](double limit, double value) {
    return text_beside(limit, {value}, metric_named("wall_seconds"))(value);
  };
  CHECK(seconds(60, 2.56) == "3s");
  CHECK(seconds(2.6, 2.56) == "2.56 s");
  CHECK(seconds(2.6, 2.6) == "3s");
  CHECK(seconds(0, 0.004) == "0.004 s");
  const auto accuracy = metric_named("token_accuracy");
  CHECK(text_beside(0.99, {0.98996}, accuracy)(0.98996) == "98.996 %");
  CHECK(text_beside(std::nan(""), {0.98996}, accuracy)(0.98996) == "99.0 %");
  CHECK(decimals_beside({0, 1}, {0.5, 0.99996}, 4) == 5);
  CHECK(decimals_beside({0}, {std::nan(""), 1e-300}, 2) == 12);
}

TEST_CASE("changes are signed percentages", "[report]") {
  REQUIRE(change_text(0.4133) == "+41.3 %");
  REQUIRE(change_text(-0.093) == "\u22129.3 %");
  REQUIRE(change_text(0) == "+0.0 %");
  REQUIRE(change_text(-0.0001) == "+0.0 %");
}

}  // namespace
}  // namespace forge::results
