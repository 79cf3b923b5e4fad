#include "core/results/tables/estimate.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/random.h"
#include "core/results/statistics/significance.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;
using Values = std::vector<double>;

/// Metrics by what an expression calls them. Seeds are 1, 2, … from `first_seed` on.
class Table {
 public:
  Table& add(const std::string& name, const Values& values, int64_t first_seed = 1) {
    // From the dot or bracket on, which differs between the rows that are used here.
    MetricSample sample{name.substr(std::min(name.size(), name.find_first_of(".["))), {}};
    for (const double value : values) sample.values.push_back({first_seed++, value});
    metrics_[name] = sample;
    return *this;
  }
  Samples samples() const {
    return [this](const Name& name) -> std::optional<MetricSample> {
      const auto found = metrics_.find(text_of(name));
      if (found == metrics_.end()) return std::nullopt;
      return found->second;
    };
  }

 private:
  std::map<std::string, MetricSample> metrics_;
};

ClaimResult result(const std::string& claim, const Table& table) {
  return judge(parse_comparison(claim), table.samples());
}

Estimate estimated(const std::string& expression, const Table& table) {
  return estimate(parse_expression(expression), table.samples());
}

TEST_CASE("rows of the same seeds are compared seed by seed", "[judge]") {
  const Values a = {2.10, 2.31, 2.19, 2.25};
  const Values b = {2.14, 2.34, 2.24, 2.29};
  const Table table = Table().add("loss[a]", a).add("loss[b]", b);
  const ClaimResult found = result("loss[a] < loss[b]", table);
  const statistics::Difference wanted = *statistics::paired_test(a, b);
  REQUIRE(found.margin.method == EstimateMethod::paired_by_seed);
  REQUIRE(*found.margin.value == Approx(wanted.difference).epsilon(1e-12));
  REQUIRE(*found.margin.standard_error == Approx(wanted.standard_error).epsilon(1e-10));
  REQUIRE(*found.margin.p == Approx(wanted.p).epsilon(1e-9));
  REQUIRE(found.margin.interval->low == Approx(wanted.interval.low).epsilon(1e-10));
  REQUIRE(found.verdict == Verdict::holds);
  REQUIRE(found.reason.empty());
  REQUIRE(found.margin.runs == 4);
}

TEST_CASE("rows of other seeds are compared as by Welch", "[judge]") {
  const Values a = {2.10, 2.31, 2.19};
  const Values b = {2.84, 2.94, 2.84, 2.79, 2.9};
  const Table table = Table().add("loss[a]", a, 1).add("loss[b]", b, 1);
  const ClaimResult found = result("loss[a] < loss[b]", table);
  const statistics::Difference wanted = *statistics::welch_test(a, b);
  REQUIRE(found.margin.method == EstimateMethod::independent_rows);
  REQUIRE(*found.margin.value == Approx(wanted.difference).epsilon(1e-12));
  REQUIRE(*found.margin.standard_error == Approx(wanted.standard_error).epsilon(1e-9));
  REQUIRE(*found.margin.degrees_of_freedom == Approx(wanted.degrees_of_freedom).epsilon(1e-8));
  REQUIRE(*found.margin.p == Approx(wanted.p).epsilon(1e-8));
  REQUIRE(found.margin.interval->high == Approx(wanted.interval.high).epsilon(1e-8));
  REQUIRE(found.verdict == Verdict::holds);
  REQUIRE(found.margin.runs == 3);
}

TEST_CASE("a claim holds, fails or is not decidable", "[judge]") {
  const Table table = Table()
                          .add("loss[low]", {1.01, 1.02, 1.03})
                          .add("loss[high]", {2.03, 2.01, 2.02})
                          .add("loss[wide]", {0.2, 1.2, 1.9});
  REQUIRE(result("loss[low] < loss[high]", table).verdict == Verdict::holds);
  REQUIRE(result("loss[low] > loss[high]", table).verdict == Verdict::fails);
  REQUIRE(result("loss[low] <= loss[high]", table).verdict == Verdict::holds);
  REQUIRE(result("loss[low] >= loss[high]", table).verdict == Verdict::fails);
  REQUIRE(result("loss[high] > 2*loss[low] - 0.1", table).verdict == Verdict::holds);
  const ClaimResult open = result("loss[wide] < loss[low]", table);
  REQUIRE(open.verdict == Verdict::not_decidable);
  REQUIRE(open.margin.interval->contains(0));
  REQUIRE(contains(open.reason, "what the runs vary is more than the difference"));
  REQUIRE(result("loss[low] < 1.5", table).verdict == Verdict::holds);
  REQUIRE(result("1.5 < loss[low]", table).verdict == Verdict::fails);
  REQUIRE(*result("loss[low] < 1.5", table).left.value == Approx(1.02));
  REQUIRE(*result("loss[low] < 1.5", table).right.value == 1.5);
}

TEST_CASE("runs that do not vary decide nothing, but what a model is made of is known", "[judge]") {
  const Table table = Table()
                          .add("steps[a]", {5, 5, 5})
                          .add("steps[b]", {6, 6, 6})
                          .add("parameters[a]", {5, 5, 5})
                          .add("parameters[b]", {6});
  const ClaimResult open = result("steps[a] < steps[b]", table);
  REQUIRE(open.verdict == Verdict::not_decidable);
  REQUIRE(contains(open.reason, "does not vary"));
  REQUIRE(result("parameters[a] < parameters[b]", table).verdict == Verdict::holds);
  REQUIRE(result("parameters[a] >= parameters[b]", table).verdict == Verdict::fails);
}

TEST_CASE("accuracies are not surer than their cases allow", "[judge]") {
  const auto verdict = [](double a, double b, double sampling_error) {
    const Samples samples = [&](const Name& name) -> std::optional<MetricSample> {
      const double value = name.config == "a" ? a : b;
      return MetricSample{name.config, {{1, value}, {2, value}, {3, value}}, sampling_error};
    };
    const ClaimResult found = judge(parse_comparison("accuracy[a] > accuracy[b]"), samples);
    REQUIRE(found.margin.interval);
    // One may be right where the other is wrong: the errors of both add up.
    REQUIRE(found.margin.interval->half_width() ==
            Approx(1.959964 * 2 * sampling_error).epsilon(1e-5));
    return found.verdict;
  };
  REQUIRE(verdict(0.99, 0.98, 0.01) == Verdict::not_decidable);
  REQUIRE(verdict(0.99, 0.90, 0.01) == Verdict::holds);
}

TEST_CASE("rows that solve different kinds of cases are as good where they solve as many",
          "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  constexpr int times = 2000, cases = 64;
  RandomStream random(seed, stream_number("kinds of cases"));
  int real = 0;
  for (int i = 0; i < times; ++i) {
    // Half of all cases are of a kind that a solves, the others of a kind that b does.
    int of_a = 0;
    for (int k = 0; k < cases; ++k) of_a += open_uniform(random.next_u32()) < 0.5;
    const Samples samples = [&](const Name& name) -> std::optional<MetricSample> {
      const double right = name.config == "a" ? of_a : cases - of_a;
      const double of_cases = statistics::sampling_error_of_fraction(right / cases, cases);
      MetricSample sample{name.config, {}, of_cases};
      for (int64_t run = 0; run < 5; ++run)
        sample.values.push_back({run, (right + (run == 2 ? 0.5 : 0)) / cases});
      return sample;
    };
    real += judge(parse_comparison("accuracy[a] > accuracy[b]"), samples).verdict !=
            Verdict::not_decidable;
  }
  CAPTURE(real, seed);
  CHECK(real / double{times} <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / times));
}

/// Of tables in which all rows do the same, the share in which the claim holds.
double share_that_holds(const std::string& claim, size_t n, uint64_t seed) {
  RandomStream random(seed, stream_number(claim + std::to_string(n)));
  const int times = 2000;
  int held = 0;
  for (int i = 0; i < times; ++i) {
    Table table;
    for (const char* name : {"loss[a]", "loss[b]", "loss[c]", "loss[d]", "loss[e]"}) {
      Values values(n);
      for (double& value : values)
        value = 2 + 0.01 * normal_quantile(open_uniform(random.next_u32()));
      table.add(name, values);
    }
    held += result(claim, table).verdict == Verdict::holds;
  }
  return held / static_cast<double>(times);
}

TEST_CASE("the minimum of equal rows is rarely found to be lower than a row",
          "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  for (const char* claim : {"min(loss[a], loss[b]) < loss[c]",
                            "min(loss[a], loss[b], loss[d], loss[e]) < loss[c]",
                            "loss[c] - min(loss[a], loss[b]) > 0",
                            "max(loss[a], loss[b]) > loss[c]",
                            "abs(loss[a] - loss[b]) > 0",
                            "max(loss[a], loss[b]) - min(loss[a], loss[b]) > 0",
                            "min(loss[a], loss[b], loss[c]) < loss[c]"}) {
    for (const size_t n : {5, 10, 40}) {
      const double share = share_that_holds(claim, n, seed);
      CAPTURE(claim, n, seed);
      // The interval leaves 5 % outside, on both sides together.
      REQUIRE(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / 2000));
    }
  }
}

TEST_CASE("a minimum is bounded by what it is the minimum of", "[judge]") {
  const Table table = Table()
                          .add("loss[a]", {1.01, 1.02, 1.03})
                          .add("loss[b]", {2.03, 2.01, 2.02})
                          .add("loss[c]", {1.51, 1.50, 1.52});
  REQUIRE(result("min(loss[a], loss[b]) < loss[c]", table).verdict == Verdict::holds);
  REQUIRE(result("max(loss[a], loss[b]) < loss[c]", table).verdict == Verdict::fails);
  REQUIRE(result("abs(loss[a] - loss[b]) > 0.9", table).verdict == Verdict::holds);
  REQUIRE(result("2*min(loss[a], loss[b]) - loss[c] < 0.6", table).verdict == Verdict::holds);
  REQUIRE(result("min(loss[a], loss[b])*loss[c] > 1", table).verdict == Verdict::holds);
  // The mean of the minima would be 1; the minimum of the means is what is claimed.
  const Table crossed = Table().add("loss[a]", {1, 3, 2}).add("loss[b]", {3, 1, 2.2});
  REQUIRE(*estimated("min(loss[a], loss[b])", crossed).value == Approx(2));
}

TEST_CASE("a minimum differs from what it is the minimum of", "[judge]") {
  const Table table = Table()
                          .add("loss[a]", {2.0113, 1.9921, 2.0042, 2.0017, 1.9931})
                          .add("loss[b]", {1.9113, 1.8921, 1.8742, 1.9117, 1.8981})
                          .add("loss[c]", {2.0134, 2.0045, 2.0218, 2.0023, 2.0110});
  const auto low_end = [&](const char* text) { return estimated(text, table).interval->low; };
  CHECK(low_end("max(loss[a], loss[b]) - min(loss[a], loss[b])") ==
        Approx(low_end("abs(loss[a] - loss[b])")));
  CHECK(low_end("loss[a] - min(loss[a], loss[b])") == Approx(low_end("loss[a] - loss[b]")));
  CHECK(result("min(loss[a], loss[b], loss[c]) < loss[a] - 0.05", table).verdict == Verdict::holds);
  CHECK(result("min(loss[a], loss[b]) < 0.98*loss[a]", table).verdict == Verdict::holds);
  CHECK(result("min(loss[a], loss[c]) < loss[a] - 0.05", table).verdict == Verdict::fails);
  CHECK(result("min(loss[a], loss[c]) < loss[a]", table).verdict == Verdict::not_decidable);
  CHECK(result("min(loss[a], loss[c]) <= loss[a]", table).verdict == Verdict::holds);
}

TEST_CASE("what bends within the noise decides nothing", "[judge]") {
  Table equal = Table()
                    .add("loss[a]", {2.1013, 2.3121, 2.1942, 2.2517})
                    .add("loss[b]", {2.1434, 2.2945, 2.1418, 2.2923});
  for (const char* claim : {"(loss[a] - loss[b])^2 > 0",
                            "sqrt((loss[a] - loss[b])^2) > 0",
                            "(loss[a] - loss[b])*(loss[a] - loss[b]) > 0",
                            "1/(loss[a] - loss[b]) > 0"}) {
    INFO(claim);
    const ClaimResult found = result(claim, equal);
    CHECK(found.verdict == Verdict::not_decidable);
    CHECK(contains(found.reason, "it bends within what chance moves it by"));
  }
  // One that goes on in one direction says no more and no less than what it is made of.
  const auto [low, high] = *estimated("loss[a] - loss[b]", equal).interval;
  const statistics::Interval bent = *estimated("exp(300*(loss[a] - loss[b]))", equal).interval;
  CHECK(std::log(bent.low) / 300 == Approx(low).epsilon(1e-6));
  CHECK(std::log(bent.high) / 300 == Approx(high).epsilon(1e-6));
  // Far from where it bends a square is as good as any expression, and so is a ratio.
  equal.add("loss[c]", {4.1013, 4.3121, 4.1942, 4.2517});
  CHECK(result("(loss[c] - loss[b])^2 > 1", equal).verdict == Verdict::holds);
  CHECK(result("100*(loss[c]/loss[b] - 1) > 50", equal).verdict == Verdict::holds);
  CHECK(result("log(loss[c]) > log(loss[b])", equal).verdict == Verdict::holds);
}

TEST_CASE("a claim holds at any scale and in both directions", "[judge]") {
  const Table table = Table()
                          .add("loss[low]", {2.1013, 2.3121, 2.1942, 2.2517})
                          .add("loss[high]", {4.1247, 4.3352, 4.2189, 4.2731});
  for (const double scale : {1e-7, 1.0, 20.0, 1e4, 1e8}) {
    const std::string factor = std::to_string(scale * 1e7) + "/10000000*";
    INFO(factor);
    CHECK(result(factor + "loss[low] < " + factor + "loss[high]", table).verdict == Verdict::holds);
    CHECK(result(factor + "loss[high] > " + factor + "loss[low]", table).verdict == Verdict::holds);
    CHECK(estimated(factor + "(loss[low] - loss[high])", table).interval);
    CHECK(estimated(factor + "(loss[high] - loss[low])", table).interval);
  }
}

TEST_CASE("an expression is that of the means, whatever the number of seeds",
          "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  constexpr int times = 400;
  // The mean over seeds of what bends is above it, by as much as n grows: a mean of these
  // expressions' values for each seed calls equal rows different in 8 to 57 % of the tables.
  for (const char* claim : {"exp(3*(loss[b] - loss[a])) > 1",
                            "exp(6*(loss[b] - loss[a])) > 1",
                            "(loss[b] - 2.7)/(loss[a] - 2.7) > 1",
                            "sqrt((loss[b] - loss[a])^2) > 0"}) {
    for (const int n : {5, 20, 100}) {
      RandomStream random(seed, stream_number(claim + std::to_string(n)));
      int real = 0;
      for (int i = 0; i < times; ++i) {
        Values a(static_cast<size_t>(n)), b(a.size());
        for (double& x : a) x = 3 + 0.07 * normal_quantile(open_uniform(random.next_u32()));
        for (double& x : b) x = 3 + 0.07 * normal_quantile(open_uniform(random.next_u32()));
        const Table table = Table().add("loss[a]", a).add("loss[b]", b);
        real += result(claim, table).verdict != Verdict::not_decidable;
      }
      const double share = real / double{times};
      CAPTURE(claim, n, share, seed);
      CHECK(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / times));
    }
  }
}

TEST_CASE("differences of rounded values that hardly vary decide nothing", "[judge]") {
  const Table table = Table().add("loss[a]", {3.01, 3.02, 3.04}).add("loss[b]", {3.02, 3.03, 3.05});
  CHECK(result("loss[a] < loss[b]", table).verdict == Verdict::not_decidable);
}

TEST_CASE("one run gives a value and no interval", "[judge]") {
  const Table table = Table().add("loss[a]", {1.5}).add("loss[b]", {2.0, 2.1, 2.2});
  const ClaimResult found = result("loss[a] < loss[b]", table);
  REQUIRE(found.verdict == Verdict::not_decidable);
  REQUIRE(*found.margin.value == Approx(-0.6));
  REQUIRE_FALSE(found.margin.interval);
  REQUIRE_FALSE(found.margin.p);
  REQUIRE(found.margin.runs == 1);
  REQUIRE(found.reason == "one run counts with loss[a]");
  REQUIRE(*found.left.value == 1.5);
  REQUIRE(found.right.interval);
}

TEST_CASE("what is missing is named", "[judge]") {
  const Table table = Table()
                          .add("loss[a]", {1.5, 1.6})
                          .add("loss[none]", {})
                          .add("loss[nan]", {1.5, std::nan("")})
                          .add("zero", {0, 0});
  REQUIRE(result("loss[b] < loss[a]", table).reason == "no run has loss[b]");
  REQUIRE(result("loss[none] < loss[a]", table).reason == "no run has loss[none]");
  REQUIRE(contains(result("loss[nan] < loss[a]", table).reason, "inf or NaN in 1 of 2 runs"));
  REQUIRE(contains(result("loss[a]/zero < 1", table).reason, "a division by zero"));
  REQUIRE_FALSE(result("loss[a]/zero < 1", table).margin.value);
}

TEST_CASE("a value that only some seeds have is not decidable", "[judge]") {
  // The mean has a logarithm, one of the seeds has none.
  const Table table = Table().add("x", {-1, 5, 5}).add("y[b]", {0.001, 0.002}, 7);
  const Estimate found = estimated("log(x)", table);
  REQUIRE(*found.value == Approx(std::log(3.0)));
  REQUIRE_FALSE(found.interval);
  REQUIRE(contains(found.missing, "bends within what chance moves it by, or has no value there"));
}

TEST_CASE("an expression that no run moves says so", "[judge]") {
  const Table table = Table().add("loss[a]", {1.25, 1.5, 1.375});
  for (const char* text : {"loss[a] - loss[a]", "0*loss[a]"})
    CHECK(contains(estimated(text, table).missing, "does not vary between the runs"));
  CHECK(contains(estimated("0*loss[a]", table).missing, "though its metrics do"));
  CHECK_FALSE(contains(estimated("2*x", Table().add("x", {1, 1})).missing, "though"));
}

TEST_CASE("an expression that has a value is not said to have none", "[judge]") {
  const Table table = Table().add("loss[a]", {1.25, 1.5, 1.375}).add("loss[b]", {2.25, 2.75, 2.5});
  const Estimate found = estimated("exp(-1e8*abs(loss[b] - loss[a]))", table);
  REQUIRE(*found.value == 0);
  CHECK(contains(found.missing, "chooses between values of which one is"));
}

TEST_CASE("metrics of the same runs are not taken as independent", "[judge]") {
  // a and b of one row move together, so their difference hardly varies. The third is of other
  // seeds, which leaves no pairs.
  const Table table = Table()
                          .add("a[x]", {1.0, 2.0, 3.0})
                          .add("b[x]", {1.1, 2.1, 3.1})
                          .add("c[y]", {7.0, 7.1, 7.2}, 11);
  const Estimate found = estimated("a[x] - b[x] + c[y]", table);
  REQUIRE(found.method == EstimateMethod::independent_rows);
  REQUIRE(*found.standard_error == Approx(0.1 / std::sqrt(3.0)).epsilon(1e-6));
  REQUIRE(*found.degrees_of_freedom == Approx(2).epsilon(1e-6));
}

TEST_CASE("seeds that are there twice make no pairs", "[judge]") {
  MetricSample doubled{"a", {{1, 1.0}, {1, 2.0}, {2, 3.0}}};
  MetricSample other{"b", {{1, 2.0}, {2, 2.5}}};
  const Samples samples = [&](const Name& name) {
    return std::optional<MetricSample>(name.config == "a" ? doubled : other);
  };
  const Estimate found = estimate(parse_expression("x[a] - x[b]"), samples);
  const statistics::Difference wanted = *statistics::welch_test({1, 2, 3}, {2, 2.5});
  REQUIRE(found.method == EstimateMethod::independent_rows);
  REQUIRE(*found.p == Approx(wanted.p).epsilon(1e-8));
}

/// How often the interval of an expression holds what it is at the true means.
double coverage(const std::string& text, size_t n, size_t m, bool pairs, uint64_t seed) {
  const Expression expression = parse_expression(text);
  const std::map<std::string, double> truth = {
      {"speed", 43000}, {"baseline.speed", 47000}, {"loss[a]", 1.31}, {"loss[b]", 1.38}};
  const std::map<std::string, double> spread = {
      {"speed", 900}, {"baseline.speed", 700}, {"loss[a]", 0.004}, {"loss[b]", 0.008}};
  const double wanted =
      *evaluate(expression, [&](const Name& name) { return truth.at(text_of(name)); });
  RandomStream random(seed, stream_number(text + std::to_string(n)));
  const int times = 2000;
  int held = 0;
  for (int i = 0; i < times; ++i) {
    Table table;
    for (const auto& [name, mean] : truth) {
      const bool first = name == "speed" || name == "loss[a]";
      Values values(pairs || first ? n : m);
      for (double& value : values)
        value = mean + spread.at(name) * normal_quantile(open_uniform(random.next_u32()));
      table.add(name, values, pairs || first ? 1 : 100);
    }
    held += estimate(expression, table.samples()).interval->contains(wanted);
  }
  return held / static_cast<double>(times);
}

TEST_CASE("intervals of expressions hold the truth as often as they say", "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  for (const char* text : {"100*(speed/baseline.speed - 1)",
                           "(loss[b] - loss[a])/loss[b]",
                           "log(loss[a]/loss[b])^2*speed"}) {
    for (const auto& [n, m] : {std::pair(3, 3), {5, 5}, {3, 8}, {10, 10}}) {
      for (const bool pairs : {false, true}) {
        const double share = coverage(text, n, m, pairs, seed);
        CAPTURE(text, n, m, pairs, seed);
        // Of rows of unequal size the interval is wider than it need be.
        REQUIRE(share >= 0.93);
        REQUIRE(share <= (n == m ? 0.985 : 0.999));
      }
    }
  }
}

TEST_CASE("the interval of a ratio is Fieller's", "[judge]") {
  const Values a = {2.1013, 2.3121, 2.1942, 2.2517, 2.0731};
  const Values b = {0.3434, 0.2945, 0.2418, 0.3923, 0.3310};
  // The ratios r for which a - r b is not told from 0 by the paired t test.
  const auto is_possible = [&](double ratio) {
    Values left;
    for (size_t i = 0; i < a.size(); ++i) left.push_back(a[i] - ratio * b[i]);
    return statistics::one_sample_test(left, 0)->interval.contains(0);
  };
  const statistics::Interval found =
      *estimated("x[a]/x[b]", Table().add("x[a]", a).add("x[b]", b)).interval;
  const double width = found.high - found.low;
  for (const auto& [end, inwards] : {std::pair(found.low, 1), {found.high, -1}}) {
    CAPTURE(end, width);
    CHECK(is_possible(end + inwards * 0.002 * width));
    CHECK_FALSE(is_possible(end - inwards * 0.002 * width));
  }
}

TEST_CASE("intervals of expressions that bend hold the truth where they are shown",
          "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  constexpr int times = 1000;
  const std::map<std::string, double> truth = {{"1/(loss[a] - 1.95)", 20},
                                               {"log(loss[a] - 1.95)", std::log(0.05)},
                                               {"sqrt(loss[a] - 1.95)", std::sqrt(0.05)},
                                               {"exp(50*(loss[a] - loss[b]))", 1},
                                               {"(loss[a] - loss[b])^3", 0},
                                               {"(loss[a] - 1.95)/(loss[b] - 1.95)", 1},
                                               {"(loss[a] - loss[c])/(loss[a] - loss[d])", 0.5}};
  const std::map<std::string, double> means = {
      {"loss[a]", 2}, {"loss[b]", 2}, {"loss[c]", 1.95}, {"loss[d]", 1.90}};
  for (const auto& [text, wanted] : truth) {
    for (const bool pairs : {false, true}) {
      for (const size_t n : {5, 10}) {
        RandomStream random(seed, stream_number(text + std::to_string(n)));
        int shown = 0, missed = 0;
        for (int i = 0; i < times; ++i) {
          Table table;
          int64_t first_seed = 1;
          for (const auto& [name, mean] : means) {
            Values values(n);
            for (double& value : values)
              value = mean + 0.02 * normal_quantile(open_uniform(random.next_u32()));
            table.add(name, values, first_seed);
            if (!pairs) first_seed += 100;
          }
          const Estimate found = estimated(text, table);
          if (!found.interval) continue;
          ++shown;
          missed += !found.interval->contains(wanted);
        }
        const double share = missed / double(shown);
        CAPTURE(text, n, pairs, shown, missed, seed);
        CHECK(shown >= 0.8 * times);
        CHECK(share <= 0.06 + 3 * std::sqrt(0.06 * 0.94 / shown));
      }
    }
  }
}

TEST_CASE("the spread of equal rows is rarely found to be more than nothing",
          "[judge][simulation]") {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  const uint64_t seed = chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
  constexpr int times = 1000;
  const std::string differences =
      "((loss[b] - loss[a])^2 + (loss[c] - loss[a])^2 + (loss[d] - loss[a])^2)";
  for (const std::string& text : {differences, "sqrt(" + differences + "/3)"}) {
    for (const size_t n : {4, 5, 10, 20}) {
      for (const bool pairs : {true, false}) {
        RandomStream random(seed, stream_number(text + std::to_string(n)));
        const auto draw = [&] { return 0.01 * normal_quantile(open_uniform(random.next_u32())); };
        int found = 0;
        for (int i = 0; i < times; ++i) {
          Table table;
          Values shared(n);
          for (double& value : shared) value = draw();
          int64_t first_seed = 1;
          for (const char* name : {"loss[a]", "loss[b]", "loss[c]", "loss[d]"}) {
            Values values(n);
            for (size_t k = 0; k < n; ++k) values[k] = 2 + (pairs ? shared[k] : 0) + draw();
            table.add(name, values, first_seed);
            if (!pairs) first_seed += 100;
          }
          const Estimate estimate = estimated(text, table);
          found += estimate.interval && estimate.interval->low > 1e-9;
        }
        CAPTURE(text, n, pairs, found, seed);
        CHECK(found <= 0.05 * times + 3 * std::sqrt(0.05 * 0.95 * times));
      }
    }
  }
}

}  // namespace
}  // namespace forge::tables
