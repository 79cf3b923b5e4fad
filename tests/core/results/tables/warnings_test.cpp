// The warnings of docs/STATISTICS.md: how often one errs without a rule that forge has, and where
// it does err. In the order and the words of the page's table.

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "tests/core/results/tables/lab.h"
#include "tests/core/results/tables/simulated_tables.h"
#include "tests/support/catch.h"

namespace forge::tables::simulated {
namespace {

using statistics::moments_of;
using statistics::paired_test;
using Values = std::vector<double>;

constexpr double level = 0.05;
constexpr double at_plan = 0.045;  // the error of the look at the planned number of seeds

Values normals(size_t n, RandomStream& random, double spread = 1) {
  Values values(n);
  for (double& value : values) value = spread * normal(random);
  return values;
}

double mean_of_values(const Values& values) { return moments_of(values)->mean; }

/// Whether the mean of pairs' differences is called different from 0.
bool differs(const Values& differences, double error = level) {
  const auto test = statistics::one_sample_test(differences, 0);
  return test && test->p <= error;
}

Values first(const Values& values, size_t n) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Welch's test of equal samples with his own degrees of freedom.
bool errs_with_welchs_degrees(size_t n, size_t m, RandomStream& random) {
  const auto a = *moments_of(normals(n, random)), b = *moments_of(normals(m, random));
  const double va = std::pow(a.standard_error(), 2), vb = std::pow(b.standard_error(), 2);
  const double freedom =
      (va + vb) * (va + vb) / (va * va / double(n - 1) + vb * vb / double(m - 1));
  return statistics::student_t_two_sided_p((a.mean - b.mean) / std::sqrt(va + vb), freedom) <=
         level;
}

bool errs_at_any_look(size_t from, size_t to, size_t step, RandomStream& random) {
  const Values differences = normals(to, random);
  for (size_t n = from; n <= to; n += step)
    if (differs(first(differences, n))) return true;
  return false;
}

/// A bootstrap of 20 values whose ends are not widened to Student's t.
bool misses_unwidened(RandomStream& random) {
  // bootstrap_interval at the confidence whose widened ends are those of a normal distribution.
  constexpr double wanted = 1.959963984540054;
  const double t = wanted * std::sqrt(19.0 / 20.0);
  const double confidence = 1 - statistics::student_t_two_sided_p(t, 19);
  return !statistics::bootstrap_interval(normals(20, random), random.next_u32(), confidence)
              .contains(0);
}

/// An order of the rows that is one draw for all seeds, half as large as the initial weights.
bool errs_with_a_fixed_order(size_t n, RandomStream& random) {
  const double order = 0.5 * normal(random);
  Values differences = normals(n, random);
  for (double& each : differences) each += order;
  return differs(differences);
}

bool errs_with_weights(const std::vector<int64_t>& tokens, RandomStream& random) {
  const Values rows = normals(tokens.size(), random);
  double mean = 0, total = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    mean += static_cast<double>(tokens[i]) * rows[i];
    total += static_cast<double>(tokens[i]);
  }
  const auto error = statistics::error_of_weighted_mean(rows, tokens);
  return statistics::student_t_test(mean / total, error.standard_error, error.degrees_of_freedom)
             ->p <= level;
}

std::vector<int64_t> tokens_of(size_t large, int64_t each, size_t small) {
  std::vector<int64_t> tokens(large, each);
  tokens.insert(tokens.end(), small, 1);
  return tokens;
}

/// Whether a table of one row, or of several, of equal models errs whose seeds hardly differ beside
/// what these rows of text do.
bool errs_with_rows_of_text(Scenario scenario, RowEffects effects, RandomStream& random) {
  scenario.row_effects = std::move(effects);
  return outcome_of(scenario, random).wrong;
}

/// Whether equal rows are called different that losses of rows of text favour so, of five seeds
/// that hardly scatter beside them.
bool differ_by_text(const Values& baseline, const Values& other, RandomStream& random) {
  std::vector<AblationRow> rows;
  for (const Values& effects : {baseline, other}) {
    Values losses = normals(5, random, 0.001 * moments_of(effects)->standard_deviation);
    for (double& loss : losses) loss += 3 + mean_of_values(effects);
    rows.push_back(row_of(rows.empty() ? "llama" : "canon", losses, losses.size()));
    rows.back().evaluation_rows = {effects, std::vector<int64_t>(effects.size(), 512)};
  }
  return verdicts_of(table_of(rows)).cells.at("eval_loss")[1].standing != Standing::tie;
}

/// The same where only the differences from the baseline are known.
bool differ_by_text(const Values& differences, RandomStream& random) {
  return differ_by_text(Values(differences.size()), differences, random);
}

Values in_groups(size_t rows, size_t of, RandomStream& random) {
  Values effects;
  while (effects.size() < rows) effects.insert(effects.end(), of, 100 * normal(random));
  return effects;
}

/// One row of text in twenty makes up for all others.
Values few_decide(size_t rows, RandomStream& random) {
  Values effects(rows);
  for (double& each : effects) each = open_uniform(random.next_u32()) < 0.05F ? 19 : -1;
  return effects;
}

Values lognormal(size_t n, RandomStream& random) {
  Values values(n);
  for (double& each : values) each = std::exp(normal(random)) - std::exp(0.5);
  return values;
}

/// Eight rows of the same accuracy, of which nobody knows that 256 cases say only so much.
bool errs_without_sampling_error(size_t seeds, double accuracy, RandomStream& random) {
  const auto row = [&] {
    Values values;
    for (size_t k = 0; k < seeds; ++k) {
      int right = 0;
      for (int i = 0; i < 256; ++i) right += open_uniform(random.next_u32()) < accuracy;
      values.push_back(right / 256.0);
    }
    return values;
  };
  const Values baseline = row();
  std::vector<std::optional<double>> p;
  for (int i = 0; i < 8; ++i) {
    const Values own = row();
    const auto test = paired_test(own, baseline);
    p.push_back(test ? test->p : own == baseline ? 1.0 : 0.0);
  }
  const auto adjusted = statistics::holm_adjusted(p);
  return std::any_of(
      adjusted.begin(), adjusted.end(), [](const auto& each) { return *each <= level; });
}

/// The best of eight equal values, by the seeds that are shown or by two tuning seeds.
bool errs_with_the_best_of_eight(bool is_tuned_apart, RandomStream& random) {
  Values best;
  double best_mean = INFINITY;
  for (int value = 0; value < 8; ++value) {
    const Values shown = normals(5, random, 0.1);
    const double mean = mean_of_values(is_tuned_apart ? normals(2, random, 0.1) : shown);
    if (mean >= best_mean) continue;
    best_mean = mean;
    best = shown;
  }
  for (double& loss : best) loss += 3;
  Values other = normals(5, random, 0.1);
  for (double& loss : other) loss += 3;
  const Verdicts verdicts =
      verdicts_of(table_of({row_of("llama", other, 5), row_of("canon", best, 5)}));
  return verdicts.cells.at("eval_loss")[1].standing != Standing::tie;
}

/// The best of eight values by a tuning seed on the 64 rows of text that are shown, which say more
/// than the seeds.
bool errs_with_tuning_on_shown_rows(RandomStream& random) {
  constexpr size_t text_rows = 64;
  Values best = normals(text_rows, random, 0.2);
  for (int value = 1; value < 8; ++value) {
    const Values effects = normals(text_rows, random, 0.2);
    if (mean_of_values(effects) < mean_of_values(best)) best = effects;
  }
  return differ_by_text(normals(text_rows, random, 0.2), best, random);
}

/// The minimum of each seed, where that of the means is asked for, is below an equal row.
bool errs_with_minima_of_seeds(size_t n, RandomStream& random) {
  Values margins;
  for (size_t i = 0; i < n; ++i)
    margins.push_back(std::min(normal(random), normal(random)) - normal(random));
  return differs(margins) && mean_of_values(margins) < 0;
}

/// The mean over seeds of what bends is above it.
bool errs_with_means_of_values(size_t n, RandomStream& random) {
  Values values = normals(n, random, 0.6);
  for (double& each : values) each = std::exp(each) - 1;
  return differs(values) && mean_of_values(values) > 0;
}

/// Each seed ends in one of two basins.
bool errs_with_basins(int rows, size_t seeds, RandomStream& random) {
  std::vector<AblationRow> table;
  for (int i = 0; i <= rows; ++i) {
    Values losses;
    for (size_t k = 0; k < seeds; ++k)
      losses.push_back(3 + (open_uniform(random.next_u32()) < 0.5F ? 0.1 : 0) +
                       1e-4 * normal(random));
    table.push_back(row_of("row_" + std::to_string(i), losses, seeds));
  }
  const Verdicts verdicts = verdicts_of(table_of(table));
  const std::vector<Cell>& cells = verdicts.cells.at("eval_loss");
  return std::any_of(cells.begin(), cells.end(), [](const Cell& cell) {
    return cell.best || cell.standing == Standing::better || cell.standing == Standing::worse;
  });
}

bool errs_with_skewed_losses(size_t seeds, RandomStream& random) {
  Scenario scenario{0, 1, 0, seeds, seeds, seeds};
  scenario.shared = 0;
  scenario.noise = Noise::skewed;
  scenario.limits = 1;
  return outcome_of(scenario, random).wrong;
}

/// Ten seeds of which each gives one of two results.
bool errs_with_copies(RandomStream& random) {
  const Values own = normals(2, random), other = normals(2, random);
  Values differences;
  for (size_t i = 0; i < 10; ++i) differences.push_back(own[i % 2] - other[i % 2]);
  return differs(differences, at_plan);
}

/// The 20 seeds of 100 with the largest losses of the baseline, and a row that lacks one of them.
bool errs_with_chosen_seeds(RandomStream& random) {
  std::vector<std::pair<double, double>> seeds;  // the baseline's loss, what the seed shares
  for (int i = 0; i < 100; ++i) {
    const double shared = normal(random);
    seeds.emplace_back(shared + normal(random), shared);
  }
  std::sort(seeds.rbegin(), seeds.rend());
  Values differences;
  for (size_t i = 0; i < 19; ++i)
    differences.push_back(seeds[i].second + normal(random) - seeds[i].first);
  return differs(differences, level / statistics::look_factor(19, 20));
}

/// The same five seeds by another number of threads, eight times.
bool errs_with_other_sets(RandomStream& random) {
  for (int set = 0; set < 8; ++set)
    if (differs(normals(5, random), at_plan)) return true;
  return false;
}

/// Two equally fast rows, measured one after the other in each turn, with a drift of 0.1 % a run.
bool errs_with_drift(RandomStream& random) {
  Values differences = normals(5, random, 0.05 * std::sqrt(2.0));
  for (double& each : differences) each += 0.1;
  return differs(differences, at_plan);
}

/// The same on different days, which differ by 1 %.
bool errs_with_days(RandomStream& random) {
  const double days = normal(random) - normal(random);
  Values differences = normals(5, random, 0.1 * std::sqrt(2.0));
  for (double& each : differences) each += days;
  return differs(differences, at_plan);
}

struct Warning {
  const char* text;
  double low, high;  ///< between which the rate lies
  int times;         ///< so often it is tried for each simulated table
  std::function<bool(RandomStream&)> errs;
};

/// What happens without rules that forge has.
const std::vector<Warning> without = {
    {"Welch's own degrees of freedom, 2 and 10 seeds",
     0.07,
     0.13,
     10,
     [](RandomStream& r) { return errs_with_welchs_degrees(2, 10, r); }},
    {"looks at 3 and at 5 seeds",
     0.06,
     0.12,
     10,
     [](RandomStream& r) { return errs_at_any_look(3, 5, 2, r); }},
    {"looks at every number from 3 to 20",
     0.18,
     0.30,
     10,
     [](RandomStream& r) { return errs_at_any_look(3, 20, 1, r); }},
    {"a bootstrap of 20 values that is not widened", 0.06, 0.11, 2, misses_unwidened},
    {"one order for all seeds, 5 seeds",
     0.10,
     0.18,
     10,
     [](RandomStream& r) { return errs_with_a_fixed_order(5, r); }},
    {"the same, 20 seeds",
     0.33,
     0.46,
     10,
     [](RandomStream& r) { return errs_with_a_fixed_order(20, r); }},
    {"accuracies of 0.99 of 256 cases without their sampling error, 8 rows, 2 seeds",
     0.40,
     0.65,
     1,
     [](RandomStream& r) { return errs_without_sampling_error(2, 0.99, r); }},
    {"rows of text whose losses are not known, 200 of them, 4 rows, 3 claims, 5 seeds",
     0.25,
     0.45,
     1,
     [](RandomStream& r) {
       Scenario scenario{4, 1, 3, 5, 5, 5};
       scenario.knows_rows = false;
       return errs_with_rows_of_text(
           scenario, [](RandomStream& x) { return normals(200, x, std::sqrt(200.0)); }, r);
     }},
    {"the best of 8 equal values, by the seeds that are shown",
     0.05,
     0.16,
     1,
     [](RandomStream& r) { return errs_with_the_best_of_eight(false, r); }},
    {"min(a, b) < c by the minima of each seed, 5 seeds",
     0.07,
     0.15,
     10,
     [](RandomStream& r) { return errs_with_minima_of_seeds(5, r); }},
    {"the same, 40 seeds",
     0.65,
     0.85,
     10,
     [](RandomStream& r) { return errs_with_minima_of_seeds(40, r); }},
    {"exp(k (b − a)) > 1 by the values of each seed, 40 seeds, k (b − a) scattering by 0.6",
     0.15,
     0.60,
     10,
     [](RandomStream& r) { return errs_with_means_of_values(40, r); }},
    {"the same, 100 seeds",
     0.50,
     0.95,
     10,
     [](RandomStream& r) { return errs_with_means_of_values(100, r); }},
    {"ten seeds with two different results", 0.40, 0.70, 10, errs_with_copies},
    {"the 20 worst of 100 seeds of the baseline, without one of them",
     0.07,
     0.17,
     10,
     errs_with_chosen_seeds},
    {"one of eight numbers of threads, chosen by what it shows",
     0.22,
     0.40,
     10,
     errs_with_other_sets},
    {"speeds measured in one order: a drift of 0.1 % a run, noise of 0.05 %, 5 seeds",
     0.35,
     0.65,
     10,
     errs_with_drift},
    {"speeds measured one row after the other: 1 % from day to day, noise of 0.1 %, 5 seeds",
     0.75,
     1,
     10,
     errs_with_days}};

/// Where forge errs: the limits of what it knows.
const std::vector<Warning> limits = {
    {"half of the tokens in 2 of 52 rows of text",
     0.06,
     0.13,
     10,
     [](RandomStream& r) { return errs_with_weights(tokens_of(2, 25, 50), r); }},
    {"4 of 14 rows of text with ten times the tokens of the others",
     0.05,
     0.12,
     10,
     [](RandomStream& r) { return errs_with_weights(tokens_of(4, 10, 10), r); }},
    {"200 rows of text, alike in groups of 4, 4 rows, 3 claims, 5 seeds",
     0.20,
     0.50,
     1,
     [](RandomStream& r) {
       return errs_with_rows_of_text(
           {4, 1, 3, 5, 5, 5}, [](RandomStream& x) { return in_groups(200, 4, x); }, r);
     }},
    {"8 rows of text, of which one in twenty makes the difference",
     0.50,
     0.80,
     1,
     [](RandomStream& r) { return differ_by_text(few_decide(8, r), r); }},
    {"the same, 32 rows of text",
     0.08,
     0.30,
     1,
     [](RandomStream& r) { return differ_by_text(few_decide(32, r), r); }},
    {"32 rows of text with lognormal differences (σ = 1)",
     0.02,
     0.2,
     1,
     [](RandomStream& r) { return differ_by_text(lognormal(32, r), r); }},
    {"the best of 8 equal values by a tuning seed and the 64 rows of text that are shown",
     0.06,
     0.2,
     1,
     errs_with_tuning_on_shown_rows},
    {"two basins, 1 row, 2 seeds",
     0.06,
     0.18,
     1,
     [](RandomStream& r) { return errs_with_basins(1, 2, r); }},
    {"two basins, 4 rows, 2 seeds",
     0.25,
     0.55,
     1,
     [](RandomStream& r) { return errs_with_basins(4, 2, r); }},
    {"two basins, 4 rows, 3 seeds",
     0.04,
     0.18,
     1,
     [](RandomStream& r) { return errs_with_basins(4, 3, r); }},
    {"a claim about the mean of lognormal losses (σ = 1), 5 seeds",
     0.06,
     0.22,
     1,
     [](RandomStream& r) { return errs_with_skewed_losses(5, r); }},
    {"the same, 20 seeds", 0.06, 0.22, 1, [](RandomStream& r) {
       return errs_with_skewed_losses(20, r);
     }}};

void try_out(const char* table, const std::vector<Warning>& warnings) {
  for (const auto& [text, low, high, times, errs] : warnings) {
    const int tables = simulated_tables(100) * times;
    RandomStream random(simulation_seed(), stream_number(text));
    int wrong = 0;
    for (int i = 0; i < tables; ++i) wrong += errs(random);
    const double share = wrong / double(tables);
    CAPTURE(text, share, simulation_seed());
    std::cout << table << " | " << text << " | " << percent(share) << " |" << std::endl;
    const double chance = 3 * std::sqrt(share * (1 - share) / tables);
    CHECK(share >= low - chance);
    CHECK(share <= high + chance);
  }
}

TEST_CASE("without its rules a table would err so often", "[verdicts][simulation]") {
  try_out("without", without);
}

TEST_CASE("a table errs where it cannot know better", "[verdicts][simulation]") {
  try_out("limits", limits);
}

TEST_CASE("a value that is chosen with other seeds favours no row", "[verdicts][simulation]") {
  const int tables = simulated_tables(300);
  RandomStream random(simulation_seed(), stream_number("best of eight"));
  int wrong = 0;
  for (int i = 0; i < tables; ++i) wrong += errs_with_the_best_of_eight(true, random);
  const double share = wrong / double(tables);
  std::cout << "rules | the best of 8 equal values by two tuning seeds | " << percent(share) << " |"
            << std::endl;
  CHECK(share <= most_of(tables));
}

}  // namespace
}  // namespace forge::tables::simulated
