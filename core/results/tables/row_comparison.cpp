#include "core/results/tables/row_comparison.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/comparability.h"

namespace forge::tables {
namespace {

using statistics::Difference;

bool are_comparable(const AblationRow& a, const AblationRow& b, const std::string& metric) {
  if (a.group != b.group || !a.is_comparable() || !b.is_comparable()) return false;
  if (results::metric_named(metric).is_timing && (was_loaded(a) || was_loaded(b))) return false;
  return !results::metric_named(metric).depends_on_device || same_setup(a, b);
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

/// Fills in what the rows of one division say against its baseline.
class RowComparison {
 public:
  RowComparison(const Ablation& ablation, const std::string& metric, std::vector<Cell>& cells)
      : ablation_(ablation), metric_(metric), cells_(cells) {}

  void compare_with(size_t baseline) {
    const AblationRow& reference = ablation_.rows[baseline];
    std::vector<size_t> rows;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].summary.n > 0 && reference.group == ablation_.rows[i].group &&
          (i == baseline || are_comparable(ablation_.rows[i], reference, metric_)))
        rows.push_back(i);
    }
    if (cells_[baseline].summary.n == 0) return;
    std::vector<const Cell*> sampled;
    for (const size_t i : rows) sampled.push_back(&cells_[i]);
    std::vector<std::optional<double>> p;
    for (const size_t i : rows) {
      Cell& cell = cells_[i];
      p.emplace_back();
      if (i == baseline) continue;
      cell.paired = have_same_seeds(ablation_.rows[i], reference);
      cell.difference = difference_between(ablation_.rows[i], reference, metric_);
      if (cell.difference) p.back() = cell.difference->p;
      if (is_one_seed(cell, baseline)) cell.noise = noise_around(cells_[baseline], sampled);
    }
    const std::vector<std::optional<double>> adjusted = statistics::holm_adjusted(p);
    for (size_t k = 0; k < rows.size(); ++k) {
      cells_[rows[k]].p = adjusted[k];
      cells_[rows[k]].standing =
          rows[k] == baseline ? Standing::baseline : standing_of(cells_[rows[k]], baseline);
    }
    mark_best(rows);
  }

 private:
  bool is_one_seed(const Cell& cell, size_t baseline) const {
    return std::min(cell.summary.n, cells_[baseline].summary.n) < 2;
  }

  Standing standing_of(const Cell& cell, size_t baseline) const {
    if (!cell.p) return is_one_seed(cell, baseline) ? Standing::one_seed : Standing::no_spread;
    if (*cell.p > significance || cell.difference->difference == 0) return Standing::tie;
    return (cell.difference->difference > 0) == results::metric_named(metric_).higher_is_better()
               ? Standing::better
               : Standing::worse;
  }

  void mark_best(const std::vector<size_t>& rows) {
    if (rows.size() < 2) return;
    const bool more = results::metric_named(metric_).higher_is_better();
    const auto best = *std::min_element(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      const double x = cells_[a].summary.mean, y = cells_[b].summary.mean;
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
      return more ? x > y : x < y;
    });
    std::vector<std::optional<double>> p;
    for (const size_t i : rows) {
      if (i == best) continue;
      const std::optional<Difference> found =
          difference_between(ablation_.rows[best], ablation_.rows[i], metric_);
      if (!found) return;
      p.emplace_back(found->p);
    }
    if (cells_[best].standing == Standing::tie) return;
    const std::vector<std::optional<double>> adjusted = statistics::holm_adjusted(p);
    cells_[best].best = std::all_of(adjusted.begin(), adjusted.end(), [](const auto& chance) {
      return chance && *chance <= significance;
    });
  }

  const Ablation& ablation_;
  const std::string& metric_;
  std::vector<Cell>& cells_;
};

}  // namespace

const char* name_of(Standing standing) {
  constexpr const char* names[] = {
      "baseline", "better", "worse", "tie", "one seed", "no spread", "not alike"};
  return names[static_cast<size_t>(standing)];
}

bool have_same_seeds(const AblationRow& a, const AblationRow& b) {
  const auto same = [](const store::RunSummary& x, const store::RunSummary& y) {
    return x.seed == y.seed;
  };
  return a.runs.size() == b.runs.size() &&
         std::equal(a.runs.begin(), a.runs.end(), b.runs.begin(), same);
}

std::optional<Difference> difference_between(const AblationRow& own_row,
                                             const AblationRow& other_row,
                                             const std::string& metric) {
  const std::vector<double> own = values_of(own_row, metric);
  const std::vector<double> other = values_of(other_row, metric);
  const double sampling_error =
      std::hypot(sampling_error_of(own_row, metric), sampling_error_of(other_row, metric));
  return have_same_seeds(own_row, other_row)
             ? statistics::paired_test(own, other, statistics::default_confidence, sampling_error)
             : statistics::welch_test(own, other, statistics::default_confidence, sampling_error);
}

std::vector<Cell> cells_of(const Ablation& ablation, const std::string& metric) {
  std::vector<Cell> cells(ablation.rows.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    cells[i].values = values_of(row, metric);
    if (cells[i].values.empty()) continue;
    const std::string label = ablation.table.name + '\n' + row.spec.config + '\n' + metric;
    cells[i].summary =
        statistics::summarize(cells[i].values,
                              std::stoull(hash_hex(label).substr(0, 16), nullptr, 16),
                              statistics::default_confidence,
                              sampling_error_of(row, metric));
  }
  RowComparison judge(ablation, metric, cells);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (ablation.rows[i].spec.config == ablation.table.baseline) judge.compare_with(i);
  }
  return cells;
}

CellsByMetric cells_by_metric(const Ablation& ablation, const std::vector<std::string>& metrics) {
  CellsByMetric cells;
  for (const std::string& metric : metrics) {
    if (cells.count(metric) == 0) cells[metric] = cells_of(ablation, metric);
  }
  return cells;
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
  if (cells[row].summary.n == 0 || std::isnan(cells[row].summary.mean)) return std::nullopt;
  return cells[row].summary.mean;
}

}  // namespace

std::string metric_by_word(const TableSpec& table, const std::string& name) {
  if (name == "speed") return results::tokens_per_second_name;
  if (name == "memory") return results::peak_memory_name;
  if (name == "quality") {
    for (const ColumnSpec& column : table.columns) {
      const std::string& metric = column.metric;
      if (column.kind == ColumnKind::metric &&
          (metric == results::eval_loss_name ||
           results::metric_named(metric).source == results::Source::task))
        return metric;
    }
    return results::eval_loss_name;
  }
  std::vector<std::string> known = results::run_metric_names();
  for (const std::string& score : scores_of(table)) known.push_back(score);
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  known.insert(known.end(), {"quality", "speed", "memory"});
  throw Error("'" + name + "' is no metric of the table '" + table.name + "'",
              did_you_mean(name, known, "its metrics: " + join(known, ", ")),
              ExitCode::usage);
}

ParetoFront pareto(const Ablation& ablation, const std::string& first, const std::string& second) {
  const std::vector<Cell> of_first = cells_of(ablation, first);
  const std::vector<Cell> of_second = cells_of(ablation, second);
  const bool by_time =
      ablation.table.tokens_per_second != SpeedSource::benchmark &&
      (results::metric_named(first).is_timing || results::metric_named(second).is_timing);
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
