#include "core/results/tables/verdicts.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/results/metrics.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/other_sets.h"

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
  std::vector<const AblationRow*> rows;  ///< those tested, and the baseline

  /// With one row beside the baseline, which of the two is better is the same test.
  bool asks_best() const { return best && tested.size() > 1; }
};

std::map<std::string, GroupTests> tests_by_group(std::vector<Cell>& cells,
                                                 const Ablation& ablation) {
  std::map<std::string, GroupTests> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    GroupTests& group = groups[row.group];
    if (cells[i].p) group.tested.push_back(&cells[i]);
    if (cells[i].best_p) group.best = &cells[i];
    if (cells[i].p || cells[i].standing == Standing::baseline) group.rows.push_back(&row);
  }
  return groups;
}

/// The tests of a column: each row's, and where a group has more than two rows, that of its best.
void add_tests(std::vector<Cell>& cells,
               bool is_primary,
               const Ablation& ablation,
               std::vector<Test>& tests) {
  for (auto& [name, group] : tests_by_group(cells, ablation)) {
    const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, name);
    for (Cell* cell : group.tested) {
      const AblationRow& row = ablation.rows[static_cast<size_t>(cell - cells.data())];
      tests.push_back({&cell->p, place_of({&row, baseline}), name, is_primary});
    }
    if (group.asks_best())
      tests.push_back({&group.best->best_p, place_of(group.rows), name, is_primary});
  }
}

/// The groups with tests of that place among sets of runs, and those that wait for their runs,
/// unless these were begun when the former had ended.
std::set<std::string> groups_of_place(size_t number,
                                      const Ablation& ablation,
                                      const std::vector<Test>& tests) {
  std::set<std::string> groups, tested;
  for (const Test& test : tests) {
    tested.insert(test.group);
    if (test.place.number == number) groups.insert(test.group);
  }
  std::string ended;
  for (const AblationRow& row : ablation.rows)
    if (groups.count(row.group) > 0)
      for (const store::RunSummary& run : row.runs) ended = std::max(ended, run.updated);
  for (const AblationRow& row : ablation.rows)
    if (tested.count(row.group) == 0 && row.run && row.run->created <= ended)
      groups.insert(row.group);
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
  std::set<std::string> configs;
  for (const AblationRow& row : ablation.rows) configs.insert(row.spec.config);
  configs.erase(ablation.table.baseline);
  const size_t of_column = groups * (configs.size() + (configs.size() > 1 ? 1 : 0));
  DeclaredTests tests;
  for (const auto& [metric, cells] : verdicts.cells) {
    if (is_tested_column(metric, ablation.table))
      (metric == primary ? tests.of_primary : tests.of_others) += of_column;
  }
  tests.of_others += claims_to_test(ablation);
  return tests;
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

std::vector<Test> all_tests(const std::string& primary,
                            const Ablation& ablation,
                            Verdicts& verdicts) {
  std::vector<Test> tests;
  for (auto& [metric, cells] : verdicts.cells) add_tests(cells, metric == primary, ablation, tests);
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
  for (auto& [metric, cells] : verdicts.cells)
    for (auto& [name, group] : tests_by_group(cells, ablation))
      if (group.best && !group.asks_best()) group.best->best_p = group.tested.front()->p;
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
