#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/results/statistics/sample.h"
#include "tests/differential/statistics_answers.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

TEST_CASE("a sample has a mean, a standard deviation and an interval", "[statistics]") {
  const Summary summary = summarize({1, 2, 3, 4, 5}, 1);
  REQUIRE(summary.n == 5);
  REQUIRE(summary.mean == 3);
  REQUIRE(*summary.standard_deviation == Approx(std::sqrt(2.5)).epsilon(1e-15));
  REQUIRE(*summary.standard_error == Approx(std::sqrt(0.5)).epsilon(1e-15));
  REQUIRE(summary.method == IntervalMethod::student_t);
  // t of 4 degrees of freedom at 97.5 %: 2.7764451051977987.
  REQUIRE(summary.interval->low == Approx(3 - 2.7764451051977987 * std::sqrt(0.5)).epsilon(1e-13));
  REQUIRE(summary.interval->high == Approx(3 + 2.7764451051977987 * std::sqrt(0.5)).epsilon(1e-13));
}

TEST_CASE("one value has a mean and nothing else", "[statistics]") {
  const Summary summary = summarize({1.3}, 1);
  REQUIRE(summary.n == 1);
  REQUIRE(summary.mean == 1.3);
  REQUIRE_FALSE(summary.standard_deviation);
  REQUIRE_FALSE(summary.standard_error);
  REQUIRE_FALSE(summary.interval);
}

TEST_CASE("no values have no mean", "[statistics]") {
  const Summary summary = summarize({}, 1);
  REQUIRE(summary.n == 0);
  REQUIRE(std::isnan(summary.mean));
  REQUIRE_FALSE(summary.interval);
}

TEST_CASE("a value that is not finite leaves nothing to say of the others", "[statistics]") {
  for (const double value : {NAN, INFINITY, -INFINITY}) {
    const Summary summary = summarize({1, value, 2}, 1);
    REQUIRE(summary.n == 3);
    REQUIRE_FALSE(std::isfinite(summary.mean));
    REQUIRE(std::isnan(summary.mean) == std::isnan(value));
    REQUIRE_FALSE(summary.standard_deviation);
    REQUIRE_FALSE(summary.interval);
  }
}

TEST_CASE("equal values have exactly no spread", "[statistics]") {
  for (const double value : {0.1, 3.7, -1e300, 1e-300, 0.0}) {
    for (const size_t n : {2, 3, 7, 19, 20, 31}) {
      const Summary summary = summarize(std::vector<double>(n, value), 1);
      REQUIRE(summary.mean == value);
      REQUIRE(*summary.standard_deviation == 0);
      REQUIRE(summary.interval->low == value);
      REQUIRE(summary.interval->high == value);
    }
  }
}

TEST_CASE("moments neither overflow nor vanish", "[statistics]") {
  for (const double unit : {1e-300, 1e-160, 1.0, 1e160, 1e300}) {
    const Moments moments = *moments_of({1 * unit, 2 * unit, 3 * unit});
    REQUIRE(moments.mean == Approx(2 * unit).epsilon(1e-15));
    REQUIRE(moments.standard_deviation == Approx(unit).epsilon(1e-15));
  }
  // Too far apart for a double: nothing, not something wrong.
  const double largest = std::numeric_limits<double>::max();
  REQUIRE_FALSE(moments_of({-largest, largest}));
}

TEST_CASE("a small spread around a large mean keeps its digits", "[statistics]") {
  // 2^30 and steps of 2^-20 are exact.
  const double step = 0x1p-20;
  const Moments moments = *moments_of({0x1p30, 0x1p30 + step, 0x1p30 + 2 * step});
  REQUIRE(moments.mean == 0x1p30 + step);
  REQUIRE(moments.standard_deviation == Approx(step).epsilon(1e-14));
}

TEST_CASE("intervals are a bootstrap's from twenty values on", "[statistics]") {
  std::vector<double> values;
  for (int i = 0; i < 19; ++i) values.push_back(i * i);
  REQUIRE(summarize(values, 1).method == IntervalMethod::student_t);
  values.push_back(361);
  const Summary summary = summarize(values, 1);
  REQUIRE(summary.method == IntervalMethod::bootstrap);
  REQUIRE(summary.interval->contains(summary.mean));
}

TEST_CASE("an interval of more confidence than resamples can tell is as wide as Student's t",
          "[statistics]") {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(std::sin(i * i));
  const Moments moments = *moments_of(values);
  for (const double confidence : {0.995, 0.9999, 0.999999}) {
    const Interval t = student_t_interval(moments.mean, moments.standard_error(), 19, confidence);
    const Interval interval = *summarize(values, 0, confidence).interval;
    CHECK(interval.low <= t.low);
    CHECK(interval.high >= t.high);
  }
  // The usual one is the bootstrap's alone.
  CHECK(summarize(values, 0).interval->low == bootstrap_interval(values, 0, 0.95).low);
}

TEST_CASE("a confidence lies between 0 and 1", "[statistics]") {
  for (const double confidence : {0.0, 1.0, 95.0, -0.5, double(NAN)}) {
    REQUIRE(tests::contains(tests::error_of([&] {
                              summarize({1, 2, 3}, 1, confidence);
                            }),
                            "a confidence lies between 0 and 1"));
  }
  const Summary narrow = summarize({1, 2, 3}, 1, 0.5);
  const Summary wide = summarize({1, 2, 3}, 1, 0.99);
  REQUIRE(wide.interval->low < narrow.interval->low);
  REQUIRE(wide.interval->high > narrow.interval->high);
}

std::vector<double> normal_values(size_t n, uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) values.push_back(normal_quantile(open_uniform(random.next_u32())));
  return values;
}

TEST_CASE("the same values and seed give the same interval", "[statistics]") {
  const std::vector<double> values = normal_values(25, 3);
  const Interval first = bootstrap_interval(values, 7);
  const Interval again = bootstrap_interval(values, 7);
  REQUIRE(first.low == again.low);
  REQUIRE(first.high == again.high);
  REQUIRE(bootstrap_interval(values, 8).low != first.low);
}

TEST_CASE("a bootstrap's interval moves with its values", "[statistics]") {
  const std::vector<double> values = normal_values(25, 3);
  std::vector<double> moved;
  for (const double value : values) moved.push_back(1024 + value);
  const Interval first = bootstrap_interval(values, 7);
  const Interval other = bootstrap_interval(moved, 7);
  REQUIRE(other.low == Approx(1024 + first.low).epsilon(1e-12));
  REQUIRE(other.high == Approx(1024 + first.high).epsilon(1e-12));
}

TEST_CASE("the interval of skewed values reaches further where the tail is", "[statistics]") {
  std::vector<double> values;
  for (const double value : normal_values(40, 5)) values.push_back(std::exp(value));
  const double mean = moments_of(values)->mean;
  const Interval interval = bootstrap_interval(values, 1);
  REQUIRE(interval.high - mean > 1.15 * (mean - interval.low));
}

TEST_CASE("resamples that equal the sample count half", "[statistics]") {
  // Mirrored values: neither end may be favoured by more than chance.
  std::vector<double> values;
  for (int i = 0; i < 10; ++i) values.insert(values.end(), {0.1, 0.7});
  const Interval interval = bootstrap_interval(values, 1);
  REQUIRE(interval.low == Approx(0.4 - (interval.high - 0.4)).margin(0.0301));
}

TEST_CASE("a bootstrap needs two finite values", "[statistics][slow]") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values :
       {std::vector<double>{}, std::vector<double>{1}, std::vector<double>{1, 2, infinity}}) {
    REQUIRE(tests::contains(tests::error_of([&] { bootstrap_interval(values, 1); }),
                            "at least two values, all of them finite"));
  }
  REQUIRE(tests::contains(tests::error_of([] {
                            bootstrap_interval({1, 2, 3}, 1, 1.5);
                          }),
                          "between 0 and 1, 1.5 does not"));
  std::vector<double> many(65536);
  many.back() = 1;
  REQUIRE(tests::contains(tests::error_of([&] { bootstrap_interval(many, 1); }),
                          "less than 65,536 values, not 65536"));
  many.pop_back();
  many.back() = 1;
  REQUIRE(bootstrap_interval(many, 1).contains(1 / 65535.0));
}

TEST_CASE("extreme samples stay within their values", "[statistics]") {
  for (const double confidence : {0.5, 0.95, 0.999999999}) {
    std::vector<double> outlier(29, 1.0);
    outlier.push_back(1e9);
    const Interval interval = bootstrap_interval(outlier, 1, confidence);
    REQUIRE(interval.low >= 1);
    REQUIRE(interval.high <= 1e9);
    REQUIRE(interval.low <= interval.high);
  }
}

}  // namespace
}  // namespace forge::statistics

// Figures of scipy, tests/vectors/statistics.json, recorded by
// tests/differential/run_statistics.py, which compares any number of others where scipy is
// installed.

namespace forge::statistics {
namespace {

using nlohmann::json;

double largest_of(const json& sample) {
  double largest = 0;
  for (const json& value : sample) largest = std::max(largest, std::fabs(value.get<double>()));
  return largest;
}

/// What follows from a small difference of large means has fewer digits: as many as are left.
double rounding_of_t(const json& question, const json& expected) {
  const double error = expected.value("standard_error", 0.0);
  if (!question.contains("own") || error == 0) return 0;
  return 1e-15 * std::max(largest_of(question["own"]), largest_of(question["baseline"])) / error;
}

double tolerance(const std::string& key, double expected, const json& question, const json& all) {
  double scale = 0;
  for (const char* sample : {"values", "own", "baseline"})
    if (question.contains(sample)) scale = std::max(scale, largest_of(question[sample]));
  const double exact = 1e-10 * std::fabs(expected);
  if (key == "mean" || key == "low" || key == "high" || key == "difference")
    return exact + 1e-15 * scale;
  const double rounding = rounding_of_t(question, all);
  if (key == "t") return exact + rounding;
  if (key == "effect_size") return exact + 10 * rounding;
  if (key == "p") {
    const double degrees = all["degrees_of_freedom"];
    return exact + rounding * (1 + degrees * expected) + 1e-300;
  }
  return exact;
}

void require_equal(const json& expected, const json& found, const json& question) {
  if (expected.is_null() || found.is_null()) {
    REQUIRE(expected == found);
    return;
  }
  for (const auto& [key, value] : expected.items()) {
    CAPTURE(key);
    if (value.is_array()) {
      REQUIRE(value.size() == found[key].size());
      for (size_t i = 0; i < value.size(); ++i) {
        REQUIRE(value[i].is_null() == found[key][i].is_null());
        if (!value[i].is_null())
          REQUIRE(found[key][i].get<double>() == Approx(value[i].get<double>()).epsilon(1e-10));
      }
    } else if (value.is_null()) {
      REQUIRE(found[key].is_null());
    } else {
      const double wanted = value;
      REQUIRE(std::fabs(found[key].get<double>() - wanted) <=
              tolerance(key, wanted, question, expected));
    }
  }
}

TEST_CASE("known samples give scipy's figures", "[statistics]") {
  std::ifstream file(tests::tests_dir() / "vectors" / "statistics.json");
  const json recorded = json::parse(file);
  REQUIRE(recorded["cases"].size() > 200);
  for (const json& question : recorded["cases"]) {
    INFO(question.dump());
    require_equal(question["expected"], tests::answer_statistics(question), question);
  }
}

TEST_CASE("Student's t is exact far out and near the middle", "[statistics]") {
  // One degree of freedom is Cauchy's distribution: p = 1 − 2 atan(t) / π, of two and four there
  // are formulas as well.
  const double pi = std::acos(-1.0);
  for (const double t : {1e-9, 1e-3, 0.5, 1.0, 12.7, 1e5, 1e12}) {
    CAPTURE(t);
    REQUIRE(student_t_two_sided_p(t, 1) == Approx(2 * std::atan2(1, t) / pi).epsilon(1e-13));
    const double two = 1 - t / std::sqrt(2 + t * t);
    if (t < 100) REQUIRE(student_t_two_sided_p(t, 2) == Approx(two).epsilon(1e-10));
    REQUIRE(student_t_two_sided_p(-t, 3.3) == student_t_two_sided_p(t, 3.3));
  }
  for (const double confidence : {0.01, 0.5, 0.95, 0.999, 1 - 1e-9}) {
    CAPTURE(confidence);
    const double tangent = 1 / std::tan(pi * (1 - confidence) / 2);
    REQUIRE(student_t_critical_value(confidence, 1) == Approx(tangent).epsilon(1e-12));
    for (const double degrees : {1.0, 1.3, 2.0, 3.7, 18.0, 1e3, 1e6}) {
      const double reach = student_t_critical_value(confidence, degrees);
      REQUIRE(student_t_two_sided_p(reach, degrees) == Approx(1 - confidence).epsilon(1e-12));
    }
  }
}

TEST_CASE("Hedges' correction by its formula", "[statistics]") {
  const double pi = std::acos(-1.0);
  REQUIRE(hedges_correction(2) == Approx(1 / std::sqrt(pi)).epsilon(1e-14));
  REQUIRE(hedges_correction(4) == Approx(std::sqrt(2 / pi)).epsilon(1e-14));
  REQUIRE(hedges_correction(1e6) == Approx(1 - 0.75e-6).epsilon(1e-12));
}

TEST_CASE("quantiles lie between the values in order", "[statistics]") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  REQUIRE(quantile(values, 0.25) == 2);
  REQUIRE(quantile(values, 0.75) == 4);
  REQUIRE(quantile(values, 0) == 1);
  REQUIRE(quantile(values, 1) == 5);
  REQUIRE(quantile({10, 20}, 0.25) == 12.5);
  REQUIRE(std::isnan(quantile({}, 0.5)));
}

TEST_CASE("rounded values are known by their step", "[statistics]") {
  CHECK(rounding_step({3.01, 3.02, 3.05}) == 0.01);
  CHECK(rounding_step({3, 4, 7}) == 1);
  CHECK(rounding_step({3.015625, 3.03125}) == 1.0 / 64);  // bfloat16 near 3
  CHECK(rounding_step({3.0145021, 3.0398211}) == 0);
  CHECK(is_hidden_by_rounding({0.01, 0.01, 0.01}));
  CHECK(is_hidden_by_rounding({3.02 - 3.01, 3.03 - 3.02, 3.05 - 3.04}));
  CHECK_FALSE(is_hidden_by_rounding({0.01, 0.01, 0.02}));
  CHECK_FALSE(is_hidden_by_rounding({0.0100213, 0.0100297, 0.0100251}));
  CHECK_FALSE(is_hidden_by_rounding({0.01}));
  // Neither are small numbers multiples of a large step, nor negative ones losses.
  CHECK(rounding_step({7.1e-7, 7.3e-7, 7.2e-7}) == 0);
  CHECK(rounding_step({-19.6514237, -20.0231178, -19.9102334}) == 0);
  CHECK(rounding_step({4e-16, 0, 0}) == 1);
}

TEST_CASE("losses of rounded bits and perplexities are known by their step", "[statistics]") {
  std::vector<double> of_perplexity, of_bits;
  for (const double tenths : {201, 203, 202, 204}) {
    of_perplexity.push_back(std::log(tenths / 10));
    of_bits.push_back(tenths / 100 * std::log(2.0));
  }
  CHECK(rounding_step(of_perplexity) == Approx(0.1 / 20.25).epsilon(1e-3));
  CHECK(rounding_step(of_bits) == Approx(0.01 * std::log(2.0)));
  of_perplexity[0] += 1e-4;
  CHECK(rounding_step(of_perplexity) == 0);
}

TEST_CASE("rows of unequal weight tell less", "[statistics]") {
  const MeanError equal = error_of_weighted_mean({1, 2, 3, 4}, {5, 5, 5, 5});
  CHECK(equal.degrees_of_freedom == Approx(3));
  CHECK(equal.standard_error == Approx(std::sqrt(5.0 / 3 / 4)));
  // Two of four rows have nearly all the weight.
  const MeanError unequal = error_of_weighted_mean({1, 2, 3, 4}, {500, 500, 1, 1});
  CHECK(unequal.degrees_of_freedom == Approx(1.008).epsilon(1e-4));
  CHECK(unequal.standard_error > 0.49);
}

TEST_CASE("Hotelling's T reaches as far as its probability says, at every confidence",
          "[statistics]") {
  for (int dimensions = 1; dimensions <= 12; ++dimensions) {
    for (const double rest : {1.0, 2.0, 3.0, 7.5, 40.0}) {
      const double degrees_of_freedom = dimensions - 1 + rest;
      for (double tail = 0.5; tail > 1e-13; tail /= 3) {
        const double confidence = 1 - tail;
        const double t = hotelling_critical_value(confidence, dimensions, degrees_of_freedom);
        INFO(dimensions << " dimensions, " << rest << " left, tail " << tail);
        REQUIRE(hotelling_p(t, dimensions, degrees_of_freedom) ==
                Approx(1 - confidence).epsilon(1e-6));
      }
    }
  }
  CHECK(std::isinf(hotelling_critical_value(0.95, 4, 3)));
}

}  // namespace
}  // namespace forge::statistics
