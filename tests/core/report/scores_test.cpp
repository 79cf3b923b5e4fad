#include "core/report/scores.h"

#include <cmath>

#include "tests/support/catch.h"

namespace forge::report {
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

}  // namespace
}  // namespace forge::report
