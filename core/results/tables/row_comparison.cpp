#include "core/results/tables/row_comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/comparable_metrics.h"
#include "core/results/tables/completeness.h"
#include "core/results/tables/run_times.h"

namespace forge::tables {
namespace {

using statistics::Difference;

/// Of timings only those of an idle machine are.
bool are_comparable(const AblationRow& a,
                    const AblationRow& b,
                    const std::string& metric,
                    const TableSpec& table) {
  if (is_timed_by_runs(metric, table) && (was_loaded(a) || was_loaded(b))) return false;
  return why_not_comparable(a, b, metric, table).empty();
}

/// How far a single value may be from the mean of the baseline's by chance, judged by how the
/// values of all rows that have several scatter around their means.
std::optional<double> noise_around(const Cell& baseline, const std::vector<const Cell*>& cells) {
  double squares = 0;
  double freedom = 0;
  for (const Cell* cell : cells) {
    if (!cell->summary.standard_deviation) continue;
    const double own = static_cast<double>(cell->summary.n) - 1;
    squares += own * *cell->summary.standard_deviation * *cell->summary.standard_deviation;
    freedom += own;
  }
  if (freedom == 0) return std::nullopt;
  const double spread = std::sqrt(squares / freedom);
  return statistics::student_t_critical_value(statistics::default_confidence, freedom) * spread *
         std::sqrt(1 + 1 / static_cast<double>(baseline.summary.n));
}

/// Why values of rows that are comparable tell no difference of theirs.
std::string why_no_difference(const AblationRow& row,
                              const AblationRow& other,
                              const std::string& metric) {
  if (!is_finite(row, metric) || !is_finite(other, metric))
    return "a seed diverged, or has no value: the others are the better part";
  if (look_at({&row, &other}).is_chosen) return why_chosen({&row, &other});
  return "the values do not vary between the seeds, or less than they are rounded: nothing says "
         "how "
         "much chance does";
}

/// Fills in what the rows of one division say against its baseline.
class RowComparison {
 public:
  RowComparison(const Ablation& ablation, const std::string& metric, std::vector<Cell>& cells)
      : ablation_(ablation), metric_(metric), cells_(cells) {}

  void compare_with(size_t baseline) {
    if (cells_[baseline].summary.n == 0) return;
    const AblationRow& reference = ablation_.rows[baseline];
    std::vector<size_t> rows;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].summary.n > 0 && reference.group == ablation_.rows[i].group &&
          (i == baseline || are_comparable(ablation_.rows[i], reference, metric_, ablation_.table)))
        rows.push_back(i);
    }
    std::vector<const Cell*> sampled;
    for (const size_t i : rows) sampled.push_back(&cells_[i]);
    for (const size_t i : rows) {
      Cell& cell = cells_[i];
      if (i == baseline) {
        cell.standing = Standing::baseline;
        continue;
      }
      cell.paired = have_same_seeds(ablation_.rows[i], reference);
      const std::string why_not = why_untested(ablation_.rows[i], reference);
      const auto found =
          why_not.empty() ? difference_of_column(ablation_.rows[i], reference) : std::nullopt;
      const bool is_one_seed = std::min(cell.summary.n, cells_[baseline].summary.n) < 2;
      cell.standing = is_one_seed ? Standing::one_seed
                      : found     ? Standing::tie
                                  : Standing::not_tested;
      if (is_one_seed) cell.noise = noise_around(cells_[baseline], sampled);
      if (cell.standing == Standing::not_tested && is_tested_column(metric_, ablation_.table))
        cell.why_not_tested =
            why_not.empty() ? why_no_difference(ablation_.rows[i], reference, metric_) : why_not;
      if (!found) continue;
      cell.difference = found->difference;
      cell.paired = found->paired;
      cell.common_seeds = found->common_seeds;
      cell.p = found->p;
    }
    test_best(rows);
  }

 private:
  /// As in a claim about the rows.
  std::string why_untested(const AblationRow& row, const AblationRow& other) const {
    return why_not_tested({{&row, metric_}, {&other, metric_}}, ablation_);
  }

  std::optional<RowDifference> difference_of_column(const AblationRow& row,
                                                    const AblationRow& other) const {
    if (!is_tested_column(metric_, ablation_.table)) return std::nullopt;
    return difference_between(row, other, metric_);
  }

  /// The row with the best mean is the best if it is better than each other one that the table
  /// declares: its p is the largest of these tests. Were it only as good as another row, that test
  /// alone would have to err. A row that is hidden, or of which nothing is known, may be as good.
  void test_best(const std::vector<size_t>& rows) {
    if (rows.size() < std::max<size_t>(2, declared_configs(ablation_).size())) return;
    const bool more = results::metric_named(metric_).higher_is_better();
    const auto best = *std::min_element(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      const double x = cells_[a].summary.mean, y = cells_[b].summary.mean;
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
      return more ? x > y : x < y;
    });
    double largest = 0;
    for (const size_t i : rows) {
      if (i == best) continue;
      if (!why_untested(ablation_.rows[best], ablation_.rows[i]).empty()) return;
      const auto found = difference_of_column(ablation_.rows[best], ablation_.rows[i]);
      if (!found) return;
      const bool is_better =
          more ? found->difference.difference > 0 : found->difference.difference < 0;
      largest = std::max(largest, is_better ? found->p : 1);
    }
    cells_[best].best_p = largest;
  }

  const Ablation& ablation_;
  const std::string& metric_;
  std::vector<Cell>& cells_;
};

std::set<int64_t> seeds_of(const AblationRow& row) {
  std::set<int64_t> seeds;
  for (const store::RunSummary& run : row.runs) seeds.insert(run.seed);
  return seeds;
}

/// The seeds that every row has.
std::set<int64_t> common_seeds(const std::vector<const AblationRow*>& rows) {
  std::set<int64_t> common = seeds_of(*rows.front());
  for (const AblationRow* row : rows) {
    const std::set<int64_t> own = seeds_of(*row);
    std::set<int64_t> both;
    std::set_intersection(
        common.begin(), common.end(), own.begin(), own.end(), std::inserter(both, both.end()));
    common = std::move(both);
  }
  return common;
}

/// The runs that first found what the row shows.
std::vector<const store::RunSummary*> original_runs(const AblationRow& row) {
  std::vector<const store::RunSummary*> runs;
  for (const store::RunSummary& run : row.runs) {
    const auto first = std::find_if(row.first_runs.begin(),
                                    row.first_runs.end(),
                                    [&](const auto& r) { return r.seed == run.seed; });
    runs.push_back(first == row.first_runs.end() ? &run : &*first);
  }
  return runs;
}

/// The row's seeds in the order in which they were to be run: those of its first command, then of
/// the next one, also where they are not there.
std::vector<std::string> seeds_in_order(const AblationRow& row) {
  std::map<std::string, std::string> begun;  // when, by the seeds of a command
  for (const store::RunSummary* run : original_runs(row)) {
    const std::string own = std::to_string(run->seed);
    const std::string& command = run->planned_seeds.empty() ? own : run->planned_seeds;
    const auto [found, is_new] = begun.emplace(command, begun_at(*run));
    if (!is_new) found->second = std::min(found->second, begun_at(*run));
  }
  std::vector<std::pair<std::string, std::string>> commands;
  for (const auto& [seeds, time] : begun) commands.emplace_back(time, seeds);
  std::sort(commands.begin(), commands.end());
  std::vector<std::string> order;
  for (const auto& [time, seeds] : commands)
    for (const std::string& seed : split(seeds, ','))
      if (std::find(order.begin(), order.end(), seed) == order.end() &&
          !is_tuning_seed_of(row, seed))
        order.push_back(seed);
  return order;
}

/// Whether the seeds, which the row has, are the first ones that it was to be run with.
bool are_first_of(const AblationRow& row, const std::set<int64_t>& seeds) {
  const std::vector<std::string> order = seeds_in_order(row);
  if (seeds.size() > order.size()) return true;
  return std::all_of(order.begin(),
                     order.begin() + static_cast<std::ptrdiff_t>(seeds.size()),
                     [&](const std::string& seed) { return seeds.count(std::stoll(seed)) > 0; });
}

/// Whether the row has no other seeds than these, or had these planned by a command of their own.
bool has_by_themselves(const AblationRow& row, const std::set<int64_t>& seeds) {
  std::vector<std::string> texts;
  for (const int64_t seed : seeds) texts.push_back(std::to_string(seed));
  const std::string command = join(texts, ",");
  const auto is_of_it = [&](const store::RunSummary* run) {
    return seeds.count(run->seed) == 0 || run->planned_seeds == command;
  };
  const auto runs = original_runs(row);
  return row.runs.size() == seeds.size() || std::all_of(runs.begin(), runs.end(), is_of_it);
}

/// Whether all other seeds of the row were planned after a moment: it had none but these then.
bool had_no_others(const AblationRow& row,
                   const std::set<int64_t>& seeds,
                   const std::string& moment) {
  const auto runs = original_runs(row);
  return std::all_of(runs.begin(), runs.end(), [&](const store::RunSummary* run) {
    return seeds.count(run->seed) > 0 || run->created > moment;
  });
}

/// Whether these seeds are all that each row but one was to be run with, the one has them by
/// themselves or had no others when all was planned, and that was when nothing was known of the
/// other rows: nobody has compared any two of these rows before, whatever else the one was run
/// with.
bool is_first_look(const std::vector<const AblationRow*>& rows, const std::set<int64_t>& seeds) {
  const AblationRow* older = nullptr;
  std::string planned, told;
  for (const AblationRow* row : rows) {
    const bool is_new = row->runs.size() == seeds.size() && row->planned_seeds == seeds.size();
    if (!is_new && older) return false;
    if (!is_new) older = row;
    for (const store::RunSummary* run : original_runs(*row)) {
      if (seeds.count(run->seed) == 0) continue;
      planned = std::max({planned, run->created, run->imported});
      if (is_new && (told.empty() || told_at(*run) < told)) told = told_at(*run);
    }
  }
  if (older && !has_by_themselves(*older, seeds) && !had_no_others(*older, seeds, planned))
    return false;
  return seeds.size() >= 2 && rows.size() > 1 && planned < told;
}

}  // namespace

const char* name_of(Standing standing) {
  constexpr const char* names[] = {
      "baseline", "better", "worse", "tie", "one seed", "not tested", "not alike"};
  return names[static_cast<size_t>(standing)];
}

bool have_same_seeds(const AblationRow& a, const AblationRow& b) {
  const auto same = [](const store::RunSummary& x, const store::RunSummary& y) {
    return x.seed == y.seed;
  };
  return a.runs.size() == b.runs.size() &&
         std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), same);
}

Look look_at(const std::vector<const AblationRow*>& rows) {
  size_t fewest_planned = std::numeric_limits<size_t>::max(), most_planned = 0;
  size_t seeds = 0, planned = 0;
  bool is_short = false;
  for (const AblationRow* row : rows) {
    if (row->runs.size() < 2) return {};
    fewest_planned = std::min(fewest_planned, row->planned_seeds);
    most_planned = std::max(most_planned, row->planned_seeds);
    is_short = is_short || row->runs.size() < row->planned_seeds || row->missing_seeds > 0;
    seeds += row->runs.size();
    planned += row->planned_seeds;
  }
  if (rows.empty()) return {};
  const bool is_planned = fewest_planned >= 2;
  const std::set<int64_t> common = common_seeds(rows);
  const bool are_first = std::all_of(
      rows.begin(), rows.end(), [&](const AblationRow* row) { return are_first_of(*row, common); });
  // Each run beyond the plan makes another look: they are counted over all rows.
  if (is_planned && !is_short) {
    if (seeds > planned && is_first_look(rows, common))
      return {common, statistics::look_factor(common.size(), common.size())};
    if (are_first && common.size() >= most_planned) {
      size_t beyond = 0;
      for (const AblationRow* row : rows) beyond += common.size() - row->planned_seeds;
      return {
          common, statistics::look_factor(most_planned + beyond, most_planned), false, beyond > 0};
    }
    const double factor = statistics::look_factor(most_planned + seeds - planned, most_planned);
    const bool is_beyond_plan = seeds > planned;
    // Seeds that nearly all rows have make the rows dependent, which Welch's test does not know.
    const bool are_most = std::all_of(rows.begin(), rows.end(), [&](const AblationRow* row) {
      return 4 * common.size() >= 3 * row->runs.size();
    });
    if (common.size() >= 2 && are_most && are_first) return {common, factor, false, is_beyond_plan};
    return {std::nullopt, factor, false, is_beyond_plan};
  }
  if (common.size() >= 2 && !are_first) return {std::nullopt, 1, true};
  if (common.size() >= 2)
    return {common, statistics::look_factor(common.size(), is_planned ? most_planned : 0)};
  const bool are_chosen = std::any_of(rows.begin(), rows.end(), [](const AblationRow* row) {
    return !are_first_of(*row, seeds_of(*row));
  });
  if (are_chosen) return {std::nullopt, 1, true};
  // Rows of other seeds are tested as they are, anew with each run.
  const size_t looks = seeds - 2 * (rows.size() - 1);
  return {std::nullopt, statistics::look_factor(looks, is_planned ? planned : 0)};
}

std::string why_chosen(const std::vector<const AblationRow*>& rows) {
  std::vector<std::string> lacking;
  for (const AblationRow* row : rows) {
    std::vector<std::string> seeds = seeds_in_order(*row);
    // Those behind the last one that it has are still to come.
    const auto has = [&](const std::string& seed) {
      return shown_of_seed(*row, std::stoll(seed)) != nullptr;
    };
    while (!seeds.empty() && !has(seeds.back())) seeds.pop_back();
    seeds.erase(std::remove_if(seeds.begin(), seeds.end(), has), seeds.end());
    if (!seeds.empty()) lacking.push_back(row->spec.config + " lacks " + join(seeds, ", "));
  }
  return "the seeds that its rows have in common are not the first ones of each" +
         std::string(lacking.empty() ? "" : ": ") + join(lacking, "; ");
}

std::vector<std::vector<const AblationRow*>> comparisons_of(const Ablation& ablation) {
  std::vector<std::vector<const AblationRow*>> comparisons, alone;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    alone.push_back({&row});
    const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
    if (baseline && baseline != &row && baseline->is_comparable())
      comparisons.push_back({&row, baseline});
  }
  return comparisons.empty() ? alone : comparisons;
}

bool is_finite(const AblationRow& row, const std::string& metric) {
  const std::vector<double> values = values_of(row, metric);
  return std::all_of(
      values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

AblationRow with_seeds(const AblationRow& row, const std::set<int64_t>& seeds) {
  AblationRow less = row;
  less.runs.clear();
  less.loss_at_equal_time.clear();
  less.loss_at_equal_flops.clear();
  for (size_t i = 0; i < row.runs.size(); ++i) {
    if (seeds.count(row.runs[i].seed) == 0) continue;
    less.runs.push_back(row.runs[i]);
    if (i < row.loss_at_equal_time.size())
      less.loss_at_equal_time.push_back(row.loss_at_equal_time[i]);
    if (i < row.loss_at_equal_flops.size())
      less.loss_at_equal_flops.push_back(row.loss_at_equal_flops[i]);
  }
  return less;
}

namespace {

/// Whether what is compared varies less than the rounding of the values lets it.
bool is_hidden_by_rounding(const std::vector<double>& own,
                           const std::vector<double>& other,
                           bool paired) {
  if (!paired)
    return statistics::is_hidden_by_rounding(own) && statistics::is_hidden_by_rounding(other);
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(own.size(), other.size()); ++i)
    differences.push_back(own[i] - other[i]);
  std::vector<double> both = own;
  both.insert(both.end(), other.begin(), other.end());
  return statistics::is_hidden_by_rounding(differences, statistics::rounding_step(both));
}

/// The error of the difference of two losses because the evaluation is a sample of the text: row by
/// row where both have the same rows, else as of independent rows.
statistics::MeanError evaluation_error_between(const AblationRow& own,
                                               const AblationRow& other,
                                               const std::string& metric) {
  if (!results::metric_named(metric).is_eval_loss()) return {};
  const store::EvaluationRows& ours = own.evaluation_rows;
  const store::EvaluationRows& theirs = other.evaluation_rows;
  if (ours.tokens != theirs.tokens)
    return statistics::joint_error(
        {statistics::error_of_weighted_mean(ours.losses, ours.tokens),
         statistics::error_of_weighted_mean(theirs.losses, theirs.tokens)});
  std::vector<double> differences;
  for (size_t i = 0; i < ours.losses.size(); ++i)
    differences.push_back(ours.losses[i] - theirs.losses[i]);
  return statistics::error_of_weighted_mean(differences, ours.tokens);
}

/// The covariance of two rows' means because of the seeds that both have; 0 without such. Of k
/// values each it is the sum of the products over k − 1, times k over the numbers of seeds.
double covariance_of_means(const AblationRow& own_row,
                           const std::vector<double>& own,
                           const AblationRow& other_row,
                           const std::vector<double>& other) {
  const auto mean_of_own = statistics::moments_of(own),
             mean_of_other = statistics::moments_of(other);
  if (!mean_of_own || !mean_of_other) return 0;
  double products = 0, common = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    for (size_t j = 0; j < other.size(); ++j) {
      if (own_row.runs[i].seed != other_row.runs[j].seed) continue;
      products += (own[i] - mean_of_own->mean) * (other[j] - mean_of_other->mean);
      ++common;
    }
  }
  const double numbers = static_cast<double>(own.size()) * static_cast<double>(other.size());
  return products * common / std::max(common - 1, 1.0) / numbers;
}

}  // namespace

std::optional<RowDifference> difference_between(const AblationRow& all_of_own,
                                                const AblationRow& all_of_other,
                                                const std::string& metric,
                                                double confidence) {
  if (!results::metric_named(metric).is_tested()) return std::nullopt;
  if (!is_finite(all_of_own, metric) || !is_finite(all_of_other, metric)) return std::nullopt;
  const Look look = look_at({&all_of_own, &all_of_other});
  if (look.is_chosen) return std::nullopt;
  std::optional<AblationRow> own_part, other_part;
  const auto looked_at = [&](const AblationRow& row, std::optional<AblationRow>& part) {
    if (!look.seeds || look.seeds->size() == row.runs.size()) return &row;
    return static_cast<const AblationRow*>(&part.emplace(with_seeds(row, *look.seeds)));
  };
  const AblationRow& own_row = *looked_at(all_of_own, own_part);
  const AblationRow& other_row = *looked_at(all_of_other, other_part);
  const std::vector<double> own = values_of(own_row, metric);
  const std::vector<double> other = values_of(other_row, metric);
  // The most that it may be: where one row is right on the cases that the other is wrong on.
  const double sampling_error =
      sampling_error_of(own_row, metric) + sampling_error_of(other_row, metric);
  const bool paired = have_same_seeds(own_row, other_row);
  if (is_hidden_by_rounding(own, other, paired)) return std::nullopt;
  const statistics::MeanError evaluation_error =
      evaluation_error_between(own_row, other_row, metric);
  const auto found =
      paired ? statistics::paired_test(own, other, confidence, sampling_error, evaluation_error)
             : statistics::welch_test(own,
                                      other,
                                      confidence,
                                      sampling_error,
                                      evaluation_error,
                                      covariance_of_means(own_row, own, other_row, other));
  if (!found) return std::nullopt;
  const size_t common_seeds = own_part || other_part ? own_row.runs.size() : 0;
  return RowDifference{*found, std::min(1.0, look.factor * found->p), paired, common_seeds};
}

bool is_tested_column(const std::string& metric, const TableSpec& table) {
  const results::Metric kind = results::metric_named(metric);
  return kind.is_tested() && !kind.is_exact() && kind.unit != results::Unit::bytes &&
         !shows_benchmark({ColumnKind::metric, "", metric}, table);
}

std::vector<Cell> compared_cells(const Ablation& ablation, const std::string& metric) {
  std::vector<Cell> cells(ablation.rows.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    if (shows_benchmark({ColumnKind::metric, "", metric}, ablation.table)) continue;
    cells[i].values = values_of(row, metric);
    if (cells[i].values.empty()) continue;
    // The same of every metric: columns with the same numbers have the same intervals.
    const std::string label = ablation.table.name + '\n' + row.spec.config;
    cells[i].summary =
        statistics::summarize(cells[i].values,
                              std::stoull(hash_hex(label).substr(0, 16), nullptr, 16),
                              statistics::default_confidence,
                              cases_of(row, metric));
  }
  RowComparison comparison(ablation, metric, cells);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (ablation.rows[i].spec.config == ablation.table.baseline) comparison.compare_with(i);
  }
  return cells;
}

void settle(std::vector<Cell>& cells, const std::string& metric) {
  const bool more = results::metric_named(metric).higher_is_better();
  for (Cell& cell : cells) {
    cell.best = cell.best_p && *cell.best_p <= significance;
    if (cell.standing != Standing::tie || !cell.p || *cell.p > significance) continue;
    const double difference = cell.difference->difference;
    if (difference != 0)
      cell.standing = (difference > 0) == more ? Standing::better : Standing::worse;
  }
}

namespace {

/// Positive where `a` is the better value.
double advantage(double a, double b, const std::string& metric) {
  return results::metric_named(metric).higher_is_better() ? a - b : b - a;
}

/// The row's mean of the metric; a speed may be one that was measured.
std::optional<double> value_of(const Ablation& ablation,
                               size_t row,
                               const std::vector<Cell>& cells,
                               const std::string& metric) {
  if (metric == results::tokens_per_second_name)
    return tokens_per_second_of(ablation.rows[row], ablation.table);
  if (cells[row].summary.n == 0 || !std::isfinite(cells[row].summary.mean)) return std::nullopt;
  return cells[row].summary.mean;
}

/// The row whose way of computing those on a front share: the baseline in the row's group, or
/// where it has no comparable runs, the first row that has some. Null: no row has.
const AblationRow* reference_of(const Ablation& ablation, const AblationRow& row) {
  const auto can_be_it = [&](const AblationRow& other) {
    return other.group == row.group && other.completed() && other.is_comparable();
  };
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
  if (baseline && can_be_it(*baseline)) return baseline;
  const auto found = std::find_if(ablation.rows.begin(), ablation.rows.end(), can_be_it);
  return found == ablation.rows.end() ? nullptr : &*found;
}

}  // namespace

std::string metric_by_word(const TableSpec& table, const std::string& name) {
  if (name == "speed") return results::tokens_per_second_name;
  if (name == "memory") return results::peak_memory_name;
  if (name == "quality") return primary_metric(table);
  std::vector<std::string> known = results::run_metric_names();
  for (const std::string& score : scores_of(table)) known.push_back(score);
  if (name == results::train_loss_name && !compares_train_loss(table))
    throw Error("the table '" + table.name +
                    "' compares no training losses: its runs may differ in train.log_every, over "
                    "which each is a mean",
                "a column {kind: train_loss} lets it show only runs of one train.log_every",
                ExitCode::usage);
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  known.insert(known.end(), {"quality", "speed", "memory"});
  throw Error("'" + name + "' is no metric of the table '" + table.name + "'",
              did_you_mean(name, known, "its metrics: " + join(known, ", ")),
              ExitCode::usage);
}

ParetoFront pareto(const Ablation& ablation, const std::string& first, const std::string& second) {
  const std::vector<Cell> of_first = compared_cells(ablation, first);
  const std::vector<Cell> of_second = compared_cells(ablation, second);
  const bool by_time =
      ablation.table.tokens_per_second != SpeedSource::benchmark &&
      (results::metric_named(first).is_timing || results::metric_named(second).is_timing);
  const auto why_not_on_front = [&](const AblationRow& row) {
    const AblationRow* const reference = reference_of(ablation, row);
    for (const std::string& metric : {first, second}) {
      const std::string why =
          reference ? why_not_comparable(row, *reference, metric, ablation.table) : "";
      if (!why.empty()) return why;
    }
    return std::string();
  };
  ParetoFront front;
  std::vector<ParetoPoint>& points = front.points;
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    const auto x = value_of(ablation, i, of_first, first);
    const auto y = value_of(ablation, i, of_second, second);
    const std::string name =
        row.group.empty() ? row.spec.name : row.spec.name + " (" + row.group + ")";
    std::string reason;
    if (!row.is_comparable()) {
      reason = "not comparable";
    } else if (const std::string why = why_not_on_front(row); !why.empty()) {
      reason = why;
    } else if (by_time && was_loaded(row)) {
      reason = "the machine did other work";
    } else if (!x || !y) {
      reason = row.completed() ? "no " + (x ? second : first) : state_text(row);
    }
    if (reason.empty()) {
      points.push_back({row.spec.config, name, *x, *y, {}});
    } else {
      front.missing.push_back(name + " (" + reason + ")");
    }
  }
  for (ParetoPoint& point : points) {
    for (const ParetoPoint& other : points) {
      const double in_first = advantage(other.first, point.first, first);
      const double in_second = advantage(other.second, point.second, second);
      if (in_first >= 0 && in_second >= 0 && (in_first > 0 || in_second > 0))
        point.dominated_by.push_back(other.name);
    }
  }
  std::stable_sort(points.begin(), points.end(), [&](const ParetoPoint& a, const ParetoPoint& b) {
    return advantage(a.first, b.first, first) > 0;
  });
  return front;
}

}  // namespace forge::tables
