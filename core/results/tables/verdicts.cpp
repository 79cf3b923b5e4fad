#include "core/results/tables/verdicts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/results/metrics.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/other_budgets.h"
#include "core/results/tables/set_place.h"

namespace forge::tables {
namespace {

/// One of the tests of a table.
struct Test {
  std::optional<double>* p;  ///< of the single test so far, then adjusted
  SetPlace place;
  std::string group;  ///< of its rows
  bool is_primary;
};

/// The cells of a group that are tested against its baseline, and that of its best row.
struct GroupTests {
  std::vector<Cell*> tested;
  Cell* best = nullptr;
  std::vector<const AblationRow*> rows;
};

/// Whether which row is the best is a test of its own: with one row beside the baseline it is that
/// of this row.
bool asks_best(const Ablation& ablation) { return declared_configs(ablation).size() > 2; }

std::map<std::string, GroupTests> tests_by_group(std::vector<Cell>& cells,
                                                 const Ablation& ablation) {
  std::map<std::string, GroupTests> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    GroupTests& group = groups[row.group];
    if (cells[i].p) group.tested.push_back(&cells[i]);
    if (cells[i].best_p) group.best = &cells[i];
    group.rows.push_back(&row);
  }
  return groups;
}

/// The tests of a column: each row's, and where a group has more than two rows, that of its best.
void add_tests(const std::string& metric,
               std::vector<Cell>& cells,
               bool is_primary,
               const Ablation& ablation,
               std::vector<Test>& tests) {
  for (auto& [name, group] : tests_by_group(cells, ablation)) {
    const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, name);
    for (Cell* cell : group.tested) {
      const AblationRow& row = ablation.rows[static_cast<size_t>(cell - cells.data())];
      tests.push_back(
          {&cell->p, place_at_budget({&row, baseline}, {metric}, ablation), name, is_primary});
    }
    if (group.best && asks_best(ablation))
      tests.push_back(
          {&group.best->best_p, place_at_budget(group.rows, {metric}, ablation), name, is_primary});
  }
}

/// When the runs of each group were made, shown or hidden.
std::map<std::string, RunTimes> times_of_groups(const Ablation& ablation) {
  std::map<std::string, RunTimes> times;
  for (const AblationRow& row : ablation.rows) {
    for (const store::RunSummary& run : row.runs) times[row.group].add(run);
    if (row.run) times[row.group].add(*row.run);
  }
  for (const auto& [row, of_hidden] : ablation.hidden) times[row.second].add(of_hidden);
  return times;
}

/// The groups with tests of that place among sets of runs, and those without any test, which wait
/// for their runs or are hidden, unless these were begun when the former had ended.
std::set<std::string> groups_of_place(size_t number,
                                      const Ablation& ablation,
                                      const std::vector<Test>& tests) {
  std::set<std::string> groups, tested;
  for (const Test& test : tests) {
    tested.insert(test.group);
    if (test.place.number == number) groups.insert(test.group);
  }
  const std::map<std::string, RunTimes> times = times_of_groups(ablation);
  std::string ended;
  for (const auto& [group, of_group] : times)
    if (groups.count(group) > 0) ended = std::max(ended, of_group.ended);
  for (const auto& [group, of_group] : times)
    if (tested.count(group) == 0 && of_group.planned <= ended) groups.insert(group);
  return groups;
}

/// How many tests the table declares in so many groups: in each column every row's, and where
/// several rows stand beside the baseline that of the best. They count from the beginning, whatever
/// comes of them: who looks at a few of the rows, because others are filtered out, archived, not
/// run yet, repeated or diverged, has chosen these.
struct DeclaredTests {
  size_t of_primary = 0;
  size_t of_others = 0;  ///< other columns and claims
};

DeclaredTests declared_tests(size_t groups,
                             const std::string& primary,
                             const Ablation& ablation,
                             const Verdicts& verdicts) {
  const size_t rows = declared_configs(ablation).size() - 1;  // beside the baseline
  const size_t of_column = groups * (rows + (asks_best(ablation) ? 1 : 0));
  DeclaredTests tests;
  for (const auto& [metric, cells] : verdicts.cells) {
    if (is_tested_column(metric, ablation.table))
      (metric == primary ? tests.of_primary : tests.of_others) += of_column;
  }
  tests.of_others += claims_to_test(ablation);
  return tests;
}

/// The metric whose tests are the given one's too: a loss above the floor is the loss less a
/// constant, where the table asks that all runs are evaluated on one text. What they found does not
/// decide it: who hides a row with another floor has no test less.
std::string tested_metric(const std::string& metric, const TableSpec& table) {
  if (metric != results::loss_above_floor_name) return metric;
  const auto is_equal = [&](const char* what) {
    const auto& equal = table.must_be_equal;
    return std::find(equal.begin(), equal.end(), what) != equal.end();
  };
  return is_equal("data") && is_equal("evaluation") ? results::eval_loss_name : metric;
}

std::vector<Test> all_tests(const std::string& primary,
                            const Ablation& ablation,
                            Verdicts& verdicts) {
  std::vector<Test> tests;
  for (auto& [metric, cells] : verdicts.cells)
    add_tests(metric, cells, metric == primary, ablation, tests);
  for (JudgedClaim& claim : verdicts.claims)
    if (claim.p) tests.push_back({&claim.p, claim.place, "", false});
  return tests;
}

/// Adjusts the p of the tests with that place among sets of runs for all that the table declares in
/// their groups. What has another place, and what is not tested, counts as if it had found nothing:
/// so what is made later changes no verdict, and all that are made one after the other err in no
/// more than set_factor leaves.
void adjust_of_place(size_t number,
                     const std::string& primary,
                     const Ablation& ablation,
                     const Verdicts& verdicts,
                     const std::vector<Test>& tests) {
  const std::set<std::string> groups = groups_of_place(number, ablation, tests);
  const DeclaredTests declared = declared_tests(groups.size(), primary, ablation, verdicts);
  std::vector<const Test*> family;
  std::vector<statistics::WeightedTest> weighted, without_finding;
  for (const bool is_primary : {true, false}) {
    std::vector<const Test*> part;
    for (const Test& test : tests) {
      if (test.is_primary == is_primary && test.place.number == number) part.push_back(&test);
    }
    const size_t count =
        std::max(part.size(), is_primary ? declared.of_primary : declared.of_others);
    const double weight = 1 / static_cast<double>(std::max<size_t>(1, count));
    for (const Test* test : part) weighted.push_back({*test->p, weight});
    family.insert(family.end(), part.begin(), part.end());
    without_finding.insert(without_finding.end(), count - part.size(), {1, weight});
  }
  weighted.insert(weighted.end(), without_finding.begin(), without_finding.end());
  const auto adjusted = statistics::weighted_holm_adjusted(weighted);
  for (size_t i = 0; i < family.size(); ++i) *family[i]->p = adjusted[i];
}

/// Adjusts all p.
void adjust(const std::string& primary, const Ablation& ablation, Verdicts& verdicts) {
  const std::vector<Test> tests = all_tests(primary, ablation, verdicts);
  std::set<size_t> numbers;
  for (const Test& test : tests) {
    *test.p = std::min(1.0, test.place.factor() * **test.p);
    numbers.insert(test.place.number);
  }
  for (const size_t number : numbers) adjust_of_place(number, primary, ablation, verdicts, tests);
  if (asks_best(ablation)) return;
  for (auto& [metric, cells] : verdicts.cells) {
    for (auto& [name, group] : tests_by_group(cells, ablation)) {
      if (!group.best) continue;
      const double of_other = group.tested.empty() ? 1 : *group.tested.front()->p;
      // It is 1 where the seeds that both have say the opposite of the means.
      group.best->best_p = std::max(*group.best->best_p, of_other);
    }
  }
}

/// The cells with the adjusted p of others that ask the same: of the same differences.
std::vector<Cell> with_tests_of(const std::vector<Cell>& tested, std::vector<Cell> cells) {
  bool are_same = true;
  for (size_t i = 0; i < cells.size(); ++i) {
    Cell& cell = cells[i];
    const bool is_tested = cell.difference && tested[i].difference;
    const bool is_same = is_tested && std::abs(cell.difference->difference -
                                               tested[i].difference->difference) < 1e-9;
    if (cell.standing == Standing::tie && !is_same) cell.standing = Standing::not_tested;
    cell.p = is_same ? tested[i].p : std::nullopt;
    cell.best_p = tested[i].best_p;
    are_same = are_same && (is_same || !tested[i].difference);
  }
  if (!are_same)
    for (Cell& cell : cells) cell.best_p.reset();
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
    const std::string tested = tested_metric(metric, ablation.table);
    if (verdicts.cells.count(tested) == 0)
      verdicts.cells[tested] = compared_cells(ablation, tested);
  }
  verdicts.claims = measured_claims(ablation);
  const std::string primary = tested_metric(primary_metric(ablation.table), ablation.table);
  adjust(primary, ablation, verdicts);
  for (const std::string& metric : shown) {
    const std::string tested = tested_metric(metric, ablation.table);
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
