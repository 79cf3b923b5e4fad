// What the tests promise, tried on samples of which the truth is known.

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::statistics {
namespace {

constexpr int tables = 1000;
constexpr int rows = 8;
constexpr double level = 0.05;

/// FORGE_TEST_SEED, else always the same.
uint64_t simulation_seed() {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  static const bool told = [&] {
    std::cout << "simulations of statistics: FORGE_TEST_SEED=" << seed << "\n";
    return true;
  }();
  static_cast<void>(told);
  return seed;
}

/// Samples one after the other.
class Samples {
 public:
  explicit Samples(const std::string& name) : random_(simulation_seed(), stream_number(name)) {}

  double normal() { return normal_quantile(open_uniform(random_.next_u32())); }
  std::vector<double> normal(size_t n, double mean = 0, double deviation = 1) {
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) values.push_back(mean + deviation * normal());
    return values;
  }

 private:
  RandomStream random_;
};

/// How often differences were called real that are none.
struct ErrorRates {
  double any_row = 0;     ///< share of tables with one in any row, after Holm's correction
  double unadjusted = 0;  ///< share of all comparisons, without it
};

using Test = std::optional<Difference> (*)(
    const std::vector<double>&, const std::vector<double>&, double, double, const MeanError&);

/// Of samples that have nothing in common.
std::optional<Difference> independent_test(const std::vector<double>& own,
                                           const std::vector<double>& baseline,
                                           double confidence,
                                           double sampling_error,
                                           const MeanError& evaluation_error) {
  return welch_test(own, baseline, confidence, sampling_error, evaluation_error);
}

/// Tables whose rows all do the same as their baseline. With pairs, what both of a pair have is as
/// large as what each has alone.
ErrorRates error_rates(size_t n, Test test, bool pairs) {
  Samples samples("A/A " + std::to_string(n) + (pairs ? " pairs" : ""));
  int wrong_tables = 0;
  int wrong_rows = 0;
  for (int table = 0; table < tables; ++table) {
    const std::vector<double> shared = pairs ? samples.normal(n) : std::vector<double>(n, 0);
    const auto row = [&] {
      std::vector<double> values = samples.normal(n);
      for (size_t i = 0; i < n; ++i) values[i] += shared[i];
      return values;
    };
    const std::vector<double> baseline = row();
    std::vector<std::optional<double>> p;
    for (int i = 0; i < rows; ++i) p.push_back(test(row(), baseline, 1 - level, 0, {})->p);
    for (const auto& one : p) wrong_rows += *one <= level;
    bool wrong = false;
    for (const auto& one : holm_adjusted(p)) wrong |= *one <= level;
    wrong_tables += wrong;
  }
  return {wrong_tables / double{tables}, wrong_rows / double{tables * rows}};
}

TEST_CASE("tables without differences rarely show one", "[statistics][simulation]") {
  const double bound = level + 3 * std::sqrt(level * (1 - level) / tables);
  for (const size_t n : {3, 5, 10}) {
    for (const bool pairs : {false, true}) {
      const ErrorRates rates = error_rates(n, pairs ? paired_test : independent_test, pairs);
      CAPTURE(n, pairs, simulation_seed());
      std::cout << "A/A tables, n = " << n << (pairs ? ", pairs" : "") << ": " << rates.any_row
                << " of the tables, " << rates.unadjusted << " of the rows unadjusted\n";
      REQUIRE(rates.any_row <= bound);
      if (n == 10) REQUIRE(std::fabs(rates.unadjusted - level) <= 0.015);
    }
  }
}

/// Share of pairs of samples of n that the test tells apart.
double power(size_t n, double effect, double at, Test test, bool pairs, int times) {
  Samples samples("power");
  int found = 0;
  for (int i = 0; i < times; ++i) {
    // Of pairs the effect is in standard deviations of their differences.
    const std::vector<double> baseline = pairs ? std::vector<double>(n, 0) : samples.normal(n);
    found += test(samples.normal(n, effect), baseline, 0.95, 0, {})->p <= at;
  }
  return found / static_cast<double>(times);
}

TEST_CASE("differences are found as often as theory says", "[statistics][simulation]") {
  // Exact integrals over noncentral distributions, tests/differential/statistics_oracle.py. Among
  // them: two standard deviations at n = 5, and with no effect the exact size of Welch's test.
  std::ifstream file(tests::tests_dir() / "vectors" / "statistics.json");
  const nlohmann::json recorded = nlohmann::json::parse(file);
  const int times = 4000;
  REQUIRE(recorded["power"].size() == 12);
  for (const nlohmann::json& row : recorded["power"]) {
    for (const bool pairs : {false, true}) {
      const double theory = row[pairs ? "paired" : "welch"];
      const double found = power(row["n"],
                                 row["effect"],
                                 row["level"],
                                 pairs ? paired_test : independent_test,
                                 pairs,
                                 times);
      INFO(row.dump() << (pairs ? " pairs: " : ": ") << found << ", seed " << simulation_seed());
      REQUIRE(std::fabs(found - theory) <= 4 * std::sqrt(theory * (1 - theory) / times) + 1e-3);
    }
  }
}

TEST_CASE("effect sizes are right in the mean", "[statistics][simulation]") {
  const int times = 20000;
  for (const size_t n : {3, 5, 10}) {
    for (const double correlation : {0.0, 0.5, 0.9}) {
      Samples samples("effects");
      double welch = 0;
      double pairs = 0;
      for (int i = 0; i < times; ++i) {
        std::vector<double> baseline = samples.normal(n);
        std::vector<double> own = samples.normal(n, 1);
        welch += *welch_test(own, baseline)->effect_size / times;
        const double rest = std::sqrt(1 - correlation * correlation);
        for (size_t k = 0; k < n; ++k) own[k] = 1 + correlation * baseline[k] + rest * (own[k] - 1);
        pairs += *paired_test(own, baseline)->effect_size / times;
      }
      std::cout << "effect of 1, n = " << n << ", correlation " << correlation << ": " << welch
                << " unpaired, " << pairs << " paired\n";
      CAPTURE(n, correlation, simulation_seed());
      REQUIRE(welch == Approx(1).margin(0.03));
      REQUIRE(pairs == Approx(1).margin(0.1));  // the correlation is estimated, too
    }
  }
}

TEST_CASE("intervals hold the truth as often as they say", "[statistics][simulation]") {
  for (const size_t n : {3, 10, 20, 50}) {
    Samples samples("coverage");
    const int times = 2000;
    int held = 0;
    for (int i = 0; i < times; ++i)
      held += summarize(samples.normal(n, 2), static_cast<uint64_t>(i)).interval->contains(2);
    const double share = held / static_cast<double>(times);
    std::cout << "95 % intervals of n = " << n << ": " << share << "\n";
    CAPTURE(n, simulation_seed());
    REQUIRE(share >= 0.93);
    REQUIRE(share <= 0.965);
  }
}

/// How often two equal rows differ if what the order of the rows does to them is one draw for all
/// seeds, `ratio` times as large (in standard deviations) as what the initial weights do.
double errors_with_a_fixed_order(size_t n, double ratio) {
  Samples samples("fixed order " + std::to_string(n));
  int wrong = 0;
  constexpr int comparisons = 4000;
  for (int i = 0; i < comparisons; ++i) {
    const double order = ratio * samples.normal();
    const std::vector<double> none(n, 0.0);
    wrong += paired_test(samples.normal(n, order), none)->p <= level;
  }
  return wrong / double{comparisons};
}

TEST_CASE("an order that all seeds share makes equal rows differ", "[statistics][simulation]") {
  double before = level;
  for (const size_t n : {5, 10, 20}) {
    const double share = errors_with_a_fixed_order(n, 0.5);
    std::cout << "one order for all " << n << " seeds: " << share << " of equal rows differ\n";
    CHECK(share > before);  // more seeds do not mend it
    before = share;
  }
  CHECK(errors_with_a_fixed_order(5, 0) <= level + 3 * std::sqrt(level * (1 - level) / 4000));
}

}  // namespace
}  // namespace forge::statistics
