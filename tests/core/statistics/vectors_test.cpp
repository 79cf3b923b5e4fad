// Figures of scipy, tests/vectors/statistics.json, recorded by
// tests/differential/run_statistics.py, which compares any number of others where scipy is
// installed.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/statistics/distributions.h"
#include "tests/differential/statistics_answers.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

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
    REQUIRE(student_t_cdf(t, 1) == Approx(0.5 + std::atan(t) / pi).epsilon(1e-13));
    REQUIRE(student_t_two_sided_p(-t, 3.3) == student_t_two_sided_p(t, 3.3));
  }
  for (const double confidence : {0.01, 0.5, 0.95, 0.999, 1 - 1e-9}) {
    CAPTURE(confidence);
    const double tangent = 1 / std::tan(pi * (1 - confidence) / 2);
    REQUIRE(student_t_reach(confidence, 1) == Approx(tangent).epsilon(1e-12));
    for (const double degrees : {1.0, 1.3, 2.0, 3.7, 18.0, 1e3, 1e6}) {
      const double reach = student_t_reach(confidence, degrees);
      REQUIRE(student_t_two_sided_p(reach, degrees) == Approx(1 - confidence).epsilon(1e-12));
    }
  }
}

TEST_CASE("Hedges' correction by its formula", "[statistics]") {
  const double pi = std::acos(-1.0);
  REQUIRE(small_sample_correction(2) == Approx(1 / std::sqrt(pi)).epsilon(1e-14));
  REQUIRE(small_sample_correction(4) == Approx(std::sqrt(2 / pi)).epsilon(1e-14));
  REQUIRE(small_sample_correction(1e6) == Approx(1 - 0.75e-6).epsilon(1e-12));
}

}  // namespace
}  // namespace forge::statistics
