// What tables promise of their marks, tried on runs of which the truth is known.

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "core/base/random.h"
#include "core/report/cells.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"

namespace forge::report {
namespace {

constexpr int tables = 1000;
constexpr int rows = 8;  ///< beside the baseline

uint64_t simulation_seed() {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  return chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
}

/// A table whose rows have losses around 2, the last by `effect` standard deviations lower. Runs of
/// one seed have as much in common as each has alone; with `same_seeds` all rows have the same.
Ablation made_table(RandomStream& random, size_t n, bool same_seeds, double effect) {
  constexpr double spread = 0.01;
  const auto normal = [&] { return spread * normal_quantile(open_uniform(random.next_u32())); };
  std::vector<double> common(n);
  for (double& each : common) each = normal();
  Ablation ablation;
  ablation.table = tests::small_table();
  const RowSpec baseline = ablation.table.rows.front();
  ablation.table.rows.clear();
  for (int i = 0; i <= rows; ++i) {
    AblationRow row;
    row.spec = baseline;
    if (i > 0) row.spec.config = "row_" + std::to_string(i);
    for (size_t k = 0; k < n; ++k) {
      store::RunSummary run;
      run.status = run::RunState::completed;
      run.seed = static_cast<int64_t>(same_seeds ? k : k + n * static_cast<size_t>(i));
      run.eval_loss = 2 + normal() + (same_seeds ? common[k] : 0);
      if (i == rows) *run.eval_loss -= effect * spread;
      row.runs.push_back(run);
    }
    row.run = row.runs.back();
    ablation.table.rows.push_back(row.spec);
    ablation.rows.push_back(row);
  }
  return ablation;
}

/// Shares of the tables in which a row stands apart from the baseline, one is marked as the best,
/// and the last row is found to be better.
struct Marks {
  double any_difference = 0;
  double any_best = 0;
  double last_is_better = 0;
};

Marks marks_of(size_t n, bool same_seeds, double effect) {
  RandomStream random(simulation_seed(), stream_number("tables " + std::to_string(n)));
  Marks marks;
  for (int i = 0; i < tables; ++i) {
    const std::vector<Cell> cells =
        cells_of(made_table(random, n, same_seeds, effect), eval_loss_name);
    bool differs = false;
    bool best = false;
    for (const Cell& cell : cells) {
      REQUIRE((cell.standing == Standing::baseline || cell.paired == same_seeds));
      differs |= cell.standing == Standing::better || cell.standing == Standing::worse;
      best |= cell.best;
    }
    marks.any_difference += differs / double{tables};
    marks.any_best += best / double{tables};
    marks.last_is_better += (cells.back().standing == Standing::better) / double{tables};
  }
  return marks;
}

TEST_CASE("tables of equal rows rarely mark one", "[report][simulation]") {
  const double bound = 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables);
  for (const size_t n : {3, 5, 10}) {
    for (const bool same_seeds : {false, true}) {
      const Marks marks = marks_of(n, same_seeds, 0);
      CAPTURE(n, same_seeds, simulation_seed());
      std::cout << "equal rows, n = " << n << (same_seeds ? ", same seeds" : "") << ": "
                << marks.any_difference << " of the tables show a difference, " << marks.any_best
                << " a best row (FORGE_TEST_SEED=" << simulation_seed() << ")\n";
      REQUIRE(marks.any_difference <= bound);
      REQUIRE(marks.any_best <= bound);
    }
  }
}

TEST_CASE("tables find a difference as often as theory says", "[report][simulation]") {
  // welch_power and paired_power of tests/differential/statistics_oracle.py at 0.05 / 8, which Holm
  // never falls short of. Pairs leave the difference of two values' own noise, √2 as large.
  struct Theory {
    size_t n;
    double effect;
    double other_seeds;
    double same_seeds;
  };
  for (const Theory& theory : {Theory{5, 2, 0.3269, 0.1972},
                               Theory{5, 4, 0.9560, 0.7554},
                               Theory{10, 2, 0.8890, 0.7861}}) {
    for (const bool same_seeds : {false, true}) {
      const double found = marks_of(theory.n, same_seeds, theory.effect).last_is_better;
      const double expected = same_seeds ? theory.same_seeds : theory.other_seeds;
      CAPTURE(theory.n, theory.effect, same_seeds, simulation_seed());
      std::cout << theory.effect << " standard deviations, n = " << theory.n
                << (same_seeds ? ", same seeds" : "") << ": found in " << found
                << " of the tables, by theory " << expected << "\n";
      REQUIRE(found >= expected - 4 * std::sqrt(expected * (1 - expected) / tables));
    }
  }
}

}  // namespace
}  // namespace forge::report
