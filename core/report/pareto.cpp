#include "core/report/pareto.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/report/cells.h"

namespace forge::report {
namespace {

/// Positive where `a` is the better value.
double advantage(double a, double b, const std::string& figure) {
  return more_is_better(figure) ? a - b : b - a;
}

/// The row's mean of the figure; a speed may be one that was measured.
std::optional<double> value_of(const Ablation& ablation,
                               size_t row,
                               const std::vector<Cell>& cells,
                               const std::string& figure) {
  if (figure == tokens_per_second_name)
    return tokens_per_second_of(ablation.rows[row], ablation.table);
  if (cells[row].summary.n == 0 || std::isnan(cells[row].summary.mean)) return std::nullopt;
  return cells[row].summary.mean;
}

}  // namespace

std::string figure_named(const TableSpec& table, const std::string& name) {
  if (name == "speed") return tokens_per_second_name;
  if (name == "memory") return peak_memory_name;
  if (name == "quality") {
    for (const ColumnSpec& column : table.columns) {
      if (column.kind == ColumnKind::eval_loss || column.kind == ColumnKind::score)
        return figure_name(column);
    }
    return eval_loss_name;
  }
  std::vector<std::string> known = run_figures();
  for (const std::string& score : scores_of(table)) known.push_back(score);
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  known.insert(known.end(), {"quality", "speed", "memory"});
  const std::string near = did_you_mean(name, known);
  throw Error("'" + name + "' is no figure of the table '" + table.name + "'",
              {},
              near.empty() ? "its figures: " + join(known, ", ") : near,
              ExitCode::usage);
}

std::vector<ParetoPoint> pareto(const Ablation& ablation,
                                const std::string& first,
                                const std::string& second) {
  const std::vector<Cell> of_first = cells_of(ablation, first);
  const std::vector<Cell> of_second = cells_of(ablation, second);
  std::vector<ParetoPoint> points;
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    if (!ablation.rows[i].is_controlled()) continue;
    const auto x = value_of(ablation, i, of_first, first);
    const auto y = value_of(ablation, i, of_second, second);
    const RowSpec& spec = ablation.rows[i].spec;
    const std::string& division = ablation.rows[i].division;
    const std::string name = division.empty() ? spec.name : spec.name + " (" + division + ")";
    if (x && y) points.push_back({spec.config, name, *x, *y, {}});
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
  return points;
}

}  // namespace forge::report
