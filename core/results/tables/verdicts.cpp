#include "core/results/tables/verdicts.h"

#include <algorithm>
#include <set>

#include "core/results/metrics.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/other_sets.h"

namespace forge::tables {
namespace {

/// A place for an adjusted p, which holds the p of the single test so far.
using TestedP = std::optional<double>*;

/// The tests of a column: each row's, and where there are more than two rows, that of the best.
std::vector<TestedP> tests_of(std::vector<Cell>& cells) {
  std::vector<TestedP> tests;
  for (Cell& cell : cells) {
    if (cell.p) tests.push_back(&cell.p);
  }
  if (tests.size() < 2) return tests;
  for (Cell& cell : cells) {
    if (cell.best_p) tests.push_back(&cell.best_p);
  }
  return tests;
}

/// Rows of the table that are not tested: left out by a filter, archived, edited, not run yet. Who
/// looks at a few of the rows has chosen them, so the others count as if they had been tested.
size_t hidden_rows(const Ablation& ablation) {
  return static_cast<size_t>(
      std::count_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
        return row.spec.config != ablation.table.baseline &&
               (!row.is_comparable() || row.runs.size() < 2);
      }));
}

/// Adds tests that share one part of the error. `hidden` ones show nothing.
void add(const std::vector<TestedP>& tests,
         size_t hidden,
         std::vector<TestedP>& all,
         std::vector<statistics::WeightedTest>& weighted,
         std::vector<statistics::WeightedTest>& of_hidden) {
  const double weight = 1 / static_cast<double>(tests.size() + hidden);
  for (const TestedP p : tests) {
    all.push_back(p);
    weighted.push_back({*p, weight});
  }
  of_hidden.insert(of_hidden.end(), hidden, {1, weight});
}

/// The metric whose tests are the given one's too: a loss above the floor is the loss less a
/// constant, where all runs were evaluated on one text.
std::string tested_metric(const std::string& metric, const Ablation& ablation) {
  if (metric != results::loss_above_floor_name) return metric;
  std::set<std::optional<double>> floors;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable()) continue;
    for (const store::RunSummary& run : row.runs) floors.insert(run.entropy_floor);
  }
  return floors.size() == 1 ? results::eval_loss_name : metric;
}

/// Adjusts all p together.
void adjust(const std::string& primary, const Ablation& ablation, Verdicts& verdicts) {
  const size_t hidden = hidden_rows(ablation);
  std::vector<TestedP> of_primary, others, all;
  for (auto& [metric, cells] : verdicts.cells) {
    const std::vector<TestedP> tests = tests_of(cells);
    std::vector<TestedP>& to = metric == primary ? of_primary : others;
    to.insert(to.end(), tests.begin(), tests.end());
  }
  for (JudgedClaim& claim : verdicts.claims) {
    if (claim.p) others.push_back(&claim.p);
  }
  const double factor = factor_of_other_sets(ablation);
  for (const auto* tests : {&of_primary, &others})
    for (const TestedP p : *tests) *p = std::min(1.0, factor * **p);
  std::vector<statistics::WeightedTest> weighted, of_hidden;
  add(of_primary, hidden, all, weighted, of_hidden);
  const auto claims = static_cast<size_t>(
      std::count_if(verdicts.claims.begin(), verdicts.claims.end(), [](const auto& claim) {
        return claim.waits_for_runs;
      }));
  if (!others.empty() || claims > 0) {
    const size_t columns = verdicts.cells.size() - 1;
    add(others, hidden * columns + claims, all, weighted, of_hidden);
  }
  weighted.insert(weighted.end(), of_hidden.begin(), of_hidden.end());
  const auto adjusted = statistics::weighted_holm_adjusted(weighted);
  for (size_t i = 0; i < all.size(); ++i) *all[i] = adjusted[i];
  // With one row beside the baseline, which of the two is better is the same test.
  for (auto& [metric, cells] : verdicts.cells) {
    const std::vector<TestedP> tests = tests_of(cells);
    if (tests.size() != 1) continue;
    for (Cell& cell : cells) {
      if (cell.best_p) cell.best_p = *tests.front();
    }
  }
}

/// The cells with the adjusted p of others that ask the same.
std::vector<Cell> with_tests_of(const std::vector<Cell>& tested, std::vector<Cell> cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    cells[i].p = tested[i].p;
    cells[i].best_p = tested[i].best_p;
  }
  return cells;
}

void settle(std::vector<JudgedClaim>& claims) {
  for (JudgedClaim& claim : claims) {
    if (!claim.changed_inputs.empty() && !claim.p) claim.reason += "; " + claim.changed_inputs;
    if (!claim.p) continue;
    claim.reason += ", " + results::p_value_text(*claim.p);
    if (*claim.p > significance) {
      claim.verdict = Verdict::not_decidable;
      claim.reason += "; within noise";
    }
    if (claim.asked_afterwards) claim.reason += "; asked after runs were made";
    if (!claim.changed_inputs.empty()) claim.reason += "; " + claim.changed_inputs;
  }
}

}  // namespace

Verdicts verdicts_of(const Ablation& ablation) {
  Verdicts verdicts;
  std::set<std::string> shown = {primary_metric(ablation.table)};
  for (const ColumnSpec& column : ablation.table.columns) {
    if (metric_of(column)) shown.insert(column.metric);
  }
  for (const std::string& metric : shown) {
    const std::string tested = tested_metric(metric, ablation);
    if (verdicts.cells.count(tested) == 0)
      verdicts.cells[tested] = compared_cells(ablation, tested);
  }
  verdicts.claims = measured_claims(ablation);
  const std::string primary = tested_metric(primary_metric(ablation.table), ablation);
  adjust(primary, ablation, verdicts);
  for (const std::string& metric : shown) {
    const std::string tested = tested_metric(metric, ablation);
    if (metric != tested)
      verdicts.cells[metric] =
          with_tests_of(verdicts.cells.at(tested), compared_cells(ablation, metric));
  }
  for (auto& [metric, cells] : verdicts.cells) settle(cells, metric);
  settle(verdicts.claims);
  return verdicts;
}

std::string verdict_line(const JudgedClaim& judged) {
  return std::string(name_of(judged.verdict)) + ": " + judged.claim + " (" + judged.reason + ")";
}

}  // namespace forge::tables
