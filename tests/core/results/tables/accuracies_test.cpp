// Accuracies of so many cases, of which the truth is known: what seeds change, and what other cases
// would, are both in what a table says of them.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/results/statistics/significance.h"
#include "core/results/tables/estimate.h"
#include "tests/core/results/tables/lab.h"
#include "tests/core/results/tables/simulated_tables.h"
#include "tests/support/catch.h"

namespace forge::tables::simulated {
namespace {

constexpr const char* accuracy = "token_accuracy";

/// A row whose seeds had these fractions of so many cases right.
AblationRow row_of_fractions(const std::string& config,
                             const std::vector<double>& fractions,
                             int64_t cases) {
  AblationRow row = row_of(config, fractions, fractions.size());
  for (size_t i = 0; i < fractions.size(); ++i)
    row.runs[i].scores[accuracy] = {fractions[i], cases};
  row.run = row.runs.back();
  return row;
}

Ablation table_of_accuracies(const std::vector<AblationRow>& rows) {
  Ablation table = table_of(rows);
  table.table.columns = {{ColumnKind::metric, "Accuracy", accuracy}};
  table.table.primary = accuracy;
  return table;
}

/// A row that is right with this probability on cases that all of its seeds evaluate. What a seed
/// changes makes `ratio` of the error of these cases, in the mean over the seeds.
std::vector<double> fractions_of(
    double truth, int64_t cases, size_t seeds, double ratio, RandomStream& random) {
  const auto n = static_cast<double>(cases);
  double right = 0;
  for (int64_t i = 0; i < cases; ++i) right += open_uniform(random.next_u32()) < truth;
  const double spread = ratio * std::sqrt(truth * (1 - truth) / n * double(seeds));
  std::vector<double> fractions(seeds);
  for (double& each : fractions)
    each = std::clamp(std::round(right + n * spread * normal(random)) / n, 0.0, 1.0);
  return fractions;
}

ClaimSpec claim_at_least(double number, const std::string& config) {
  ClaimSpec claim;
  claim.config = config;
  claim.score = accuracy;
  claim.at_least = number;
  claim.profile = "full";
  return claim;
}

/// Whether a table of one row decides that it is at least as good as it is, or not.
bool decides_the_truth(const std::vector<double>& fractions, int64_t cases, double truth) {
  Ablation table = table_of_accuracies({row_of_fractions("llama", fractions, cases)});
  table.table.claims = {claim_at_least(truth, "llama")};
  return verdicts_of(table).claims.front().verdict != Verdict::not_decidable;
}

/// The same of a claim in the words of an expression.
bool estimate_misses(const std::vector<double>& fractions, int64_t cases, double truth) {
  const Ablation table = table_of_accuracies({row_of_fractions("llama", fractions, cases)});
  const Expression expression = parse_expression(std::string(accuracy) + "[llama]");
  const Estimate found = estimate(expression, samples_for(table, table.rows.front()));
  return found.interval && !found.interval->contains(truth);
}

bool differ(const std::vector<double>& own, const std::vector<double>& other, int64_t cases) {
  const Ablation table = table_of_accuracies(
      {row_of_fractions("llama", own, cases), row_of_fractions("canon", other, cases)});
  const Standing standing = verdicts_of(table).cells.at(accuracy)[1].standing;
  return standing == Standing::better || standing == Standing::worse;
}

TEST_CASE("of accuracies the errors of seeds and of cases add up", "[report][accuracies]") {
  const std::vector<double> own = {0.80, 0.83, 0.86, 0.81, 0.85},
                            other = {0.70, 0.74, 0.72, 0.69, 0.75};
  const AblationRow a = row_of_fractions("canon", own, 256),
                    b = row_of_fractions("llama", other, 256);
  const double cases = sampling_error_of(a, accuracy) + sampling_error_of(b, accuracy);
  const auto seeds = statistics::paired_test(own, other);
  const auto found = difference_between(a, b, accuracy);
  REQUIRE(found);
  CHECK(found->difference.interval.half_width() ==
        Approx(std::hypot(seeds->interval.half_width(), 1.959964 * cases)).epsilon(1e-5));
  CHECK(found->difference.p > seeds->p);

  const Ablation table = table_of_accuracies({b, a});
  const auto of_expression =
      estimate(parse_expression(std::string(accuracy) + "[canon] - " + accuracy + "[llama]"),
               samples_for(table, table.rows.front()));
  REQUIRE(of_expression.interval);
  CHECK(of_expression.interval->half_width() >=
        found->difference.interval.half_width() * (1 - 1e-9));

  const statistics::Summary shown = compared_cells(table, accuracy)[1].summary;
  const auto of_seeds = statistics::summarize(own, 0);
  const double mean = shown.mean;
  CHECK(mean - shown.interval->low >
        std::hypot(mean - of_seeds.interval->low, 1.95 * sampling_error_of(a, accuracy)));
}

TEST_CASE("no number of cases decides a claim about the true accuracy too often",
          "[report][accuracies]") {
  // Of seeds that change nothing: exactly, over all numbers of right cases.
  for (const int cases : {1, 2, 5, 16, 32, 64}) {
    for (const double truth : {0.05, 0.3, 0.5, 0.6, 0.75, 0.9, 0.985}) {
      double share = 0;
      for (int right = 0; right <= cases; ++right) {
        const double likelihood = std::exp(
            std::lgamma(cases + 1) - std::lgamma(right + 1) - std::lgamma(cases - right + 1) +
            right * std::log(truth) + (cases - right) * std::log(1 - truth));
        const std::vector<double> fractions(3, double(right) / cases);
        if (decides_the_truth(fractions, cases, truth)) share += likelihood;
      }
      CAPTURE(cases, truth);
      CHECK(share <= 0.05);
    }
  }
}

TEST_CASE("accuracies of few cases are rarely called other than they are",
          "[report][accuracies][simulation]") {
  constexpr double truth = 0.6;
  for (const int64_t cases : {16, 32, 256}) {
    for (const size_t seeds : {3, 5, 20}) {
      for (const double ratio : {0.3, 1.0}) {
        const int tables = simulated_tables(seeds < 20 ? 600 : 200);
        const std::string name =
            std::to_string(cases) + " cases, " + std::to_string(seeds) + " seeds";
        RandomStream random(simulation_seed(), stream_number(name + std::to_string(ratio)));
        int decided = 0, missed = 0, different = 0;
        for (int i = 0; i < tables; ++i) {
          const auto own = fractions_of(truth, cases, seeds, ratio, random);
          const auto other = fractions_of(truth, cases, seeds, ratio, random);
          decided += decides_the_truth(own, cases, truth);
          missed += estimate_misses(own, cases, truth);
          different += differ(own, other, cases);
        }
        std::printf("%s, ratio %.1f: %.1f %% decided, %.1f %% missed, %.1f %% different\n",
                    name.c_str(),
                    ratio,
                    100.0 * decided / tables,
                    100.0 * missed / tables,
                    100.0 * different / tables);
        CAPTURE(cases, seeds, ratio, simulation_seed());
        CHECK(decided / double(tables) <= most_of(tables));
        CHECK(missed / double(tables) <= most_of(tables));
        CHECK(different / double(tables) <= most_of(tables));
      }
    }
  }
}

}  // namespace
}  // namespace forge::tables::simulated
