#include <cmath>
#include <limits>

#include "core/results/tables/metrics.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

TEST_CASE("accuracies and validities are shares of cases and no other score is", "[report]") {
  CHECK(is_share("token_accuracy"));
  CHECK(is_share("answer_accuracy.hop_8"));
  CHECK(is_share("sentence_validity"));
  CHECK_FALSE(is_share("kl_divergence"));
  CHECK_FALSE(is_share("bits_per_parameter"));
  CHECK_FALSE(is_share("loss.accuracy"));
  CHECK_FALSE(is_share(""));
}

TEST_CASE("the headline is a score of the whole", "[report]") {
  CHECK(headline({}) == nullptr);
  CHECK(headline({{"answer_accuracy.hop_8", {0.5, 1}}}) == nullptr);
  const Scores scores = {{"answer_accuracy.hop_8", {0.5, 1}}, {"token_accuracy", {0.25, 2}}};
  CHECK(headline(scores)->first == "token_accuracy");
}

TEST_CASE("a figure is a score or the evaluation loss", "[report]") {
  store::RunSummary run;
  CHECK_FALSE(figure_of(run, "eval_loss").has_value());
  run.eval_loss = 1.5;
  run.scores["token_accuracy"] = {0.25, 2};
  CHECK(figure_of(run, "eval_loss") == 1.5);
  CHECK(figure_of(run, "token_accuracy") == 0.25);
  CHECK_FALSE(figure_of(run, "answer_accuracy").has_value());
}

TEST_CASE("the interval of a share is that of Wilson", "[report]") {
  // Newcombe, Statistics in Medicine 17 (1998) 857, table I: 81/263, 15/148, 0/20, 1/29.
  const auto check = [](double cases, int64_t count, double low, double high) {
    const Interval interval = wilson_interval(cases / static_cast<double>(count), count);
    CHECK(interval.low == Approx(low).margin(5e-5));
    CHECK(interval.high == Approx(high).margin(5e-5));
  };
  check(81, 263, 0.2553, 0.3662);
  check(15, 148, 0.0624, 0.1605);
  check(0, 20, 0, 0.1611);
  check(1, 29, 0.0061, 0.1718);
  CHECK(wilson_interval(1, 20).high == 1);
}

TEST_CASE("no number of cases makes an interval leave what a share can be", "[report]") {
  CHECK(wilson_interval(0.5, 0).low == 0);
  CHECK(wilson_interval(0.5, -3).high == 1);
  CHECK(std::isfinite(wilson_interval(1.5, 10).low));
  CHECK(wilson_interval(0.5, INT64_MAX).low == Approx(0.5));
}

TEST_CASE("losses have four decimals", "[report]") {
  REQUIRE(loss_text(1.30109) == "1.3011");
  REQUIRE(loss_text(12) == "12.0000");
  REQUIRE(loss_text(std::nan("")) == "nan");
  REQUIRE(loss_text(std::numeric_limits<double>::infinity()) == "inf");
}

TEST_CASE("a score is a percentage or has four decimals", "[report]") {
  REQUIRE(score_text(0.87549, true) == "87.5 %");
  REQUIRE(score_text(1, true) == "100.0 %");
  REQUIRE(score_text(1.30109, false) == "1.3011");
  REQUIRE(score_text(std::nan(""), true) == "nan");
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
  REQUIRE(throughput_text(1e308).size() > 300);
}

TEST_CASE("memory is given in binary units", "[report]") {
  REQUIRE(memory_text(1.5 * (1 << 30)) == "1.50 GiB");
  REQUIRE(memory_text(512.0 * (1 << 20)) == "512.00 MiB");
}

TEST_CASE("changes are signed percentages", "[report]") {
  REQUIRE(change_text(0.4133) == "+41.3 %");
  REQUIRE(change_text(-0.093) == "\u22129.3 %");
  REQUIRE(change_text(0) == "+0.0 %");
  REQUIRE(change_text(-0.0001) == "+0.0 %");
}

}  // namespace
}  // namespace forge::tables
