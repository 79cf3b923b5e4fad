#include "core/report/page/collect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/report/cells.h"
#include "core/report/commands.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::report::page {
namespace {

constexpr size_t points_of_a_page = 100000;
constexpr size_t fewest_points_of_a_curve = 100;
constexpr size_t most_points_of_a_curve = 1000;

size_t points_of_a_curve(size_t runs) {
  return std::clamp(points_of_a_page / std::max<size_t>(runs, 1),
                    fewest_points_of_a_curve,
                    most_points_of_a_curve);
}

Better better_of(const ColumnSpec& column) {
  if (column.kind == ColumnKind::overhead) return Better::higher;
  const std::string figure = figure_name(column);
  if (figure.empty()) return Better::unknown;
  return more_is_better(figure) ? Better::higher : Better::lower;
}

bool is_cost(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::parameters:
    case ColumnKind::tokens_per_second:
    case ColumnKind::peak_memory:
    case ColumnKind::overhead:
    case ColumnKind::published_tokens_per_second:
    case ColumnKind::published_peak_memory: return true;
    default: return false;
  }
}

Unit unit_of(const ColumnSpec& column) {
  switch (column.kind) {
    case ColumnKind::peak_memory: return Unit::bytes;
    case ColumnKind::overhead: return Unit::share;
    case ColumnKind::score:
    case ColumnKind::difference:
      if (column.format == ScoreFormat::percent) return Unit::share;
      if (column.format == ScoreFormat::by_name && is_share(figure_name(column)))
        return Unit::share;
      return Unit::plain;
    default: return Unit::plain;
  }
}

/// Whether the cells show the mean over seeds of the column's figure.
bool shows_means(const ColumnSpec& column, const TableSpec& table) {
  switch (column.kind) {
    case ColumnKind::eval_loss:
    case ColumnKind::train_loss:
    case ColumnKind::peak_memory:
    case ColumnKind::score: return true;
    case ColumnKind::tokens_per_second: return table.tokens_per_second == SpeedSource::runs;
    default: return false;
  }
}

Meaning meaning_of(const ColumnSpec& column, const Ablation& ablation) {
  Meaning meaning{better_of(column), is_cost(column.kind), unit_of(column)};
  if (!shows_means(column, ablation.table)) return meaning;
  for (const Cell& cell : cells_of(ablation, figure_name(column)))
    meaning.intervals.push_back(cell.summary.interval);
  return meaning;
}

/// The run that a row shows first, then its other seeds, then those that it was chosen from.
std::vector<std::string> runs_of(const AblationRow& row) {
  std::vector<std::string> ids;
  const auto add = [&](const store::RunSummary& run) {
    if (std::find(ids.begin(), ids.end(), run.id) == ids.end()) ids.push_back(run.id);
  };
  const auto add_all = [&](const Sample& sample) {
    if (sample.run) add(*sample.run);
    for (const store::RunSummary& run : sample.runs) add(run);
  };
  add_all(row);
  for (const Point& point : row.points) add_all(point);
  return ids;
}

Origin origin_of(const AblationRow& row) {
  const std::string division = row.division.empty() ? "" : " (" + row.division + ")";
  return {row.spec.name + division, runs_of(row), row.breaks};
}

Table table_of(const Ablation& ablation) {
  Table table;
  table.name = ablation.table.name;
  table.sheet = make_sheet(ablation);
  table.setup = ablation.setup;
  for (const ColumnSpec& column : shown_columns(ablation))
    table.meanings.push_back(meaning_of(column, ablation));
  for (const AblationRow& row : ablation.rows) table.origins.push_back(origin_of(row));
  return table;
}

/// The wall time at a step: that of the last training metrics up to it; NaN before the first.
double seconds_at(int64_t step, const std::vector<store::LossPoint>& losses) {
  const auto after = std::upper_bound(
      losses.begin(), losses.end(), step, [](int64_t wanted, const store::LossPoint& point) {
        return wanted < point.step;
      });
  if (after == losses.begin()) return std::numeric_limits<double>::quiet_NaN();
  return std::prev(after)->elapsed_seconds;
}

Curve training_curve(const std::vector<store::LossPoint>& losses) {
  Curve curve;
  curve.reserve(losses.size());
  for (const store::LossPoint& point : losses)
    curve.push_back({point.tokens, point.elapsed_seconds, point.loss});
  return curve;
}

Curve evaluation_curve(const std::vector<store::LossPoint>& evaluations,
                       const std::vector<store::LossPoint>& losses) {
  Curve curve;
  curve.reserve(evaluations.size());
  for (const store::LossPoint& point : evaluations)
    curve.push_back({point.tokens, seconds_at(point.step, losses), point.loss});
  return curve;
}

Run run_of(store::ConfiguredRun&& configured, const store::ResultStore& store, size_t limit) {
  Run run;
  run.summary = std::move(configured.summary);
  run.config = std::move(configured.config);
  const std::vector<store::LossPoint> losses = store.training_losses(run.summary.id);
  run.recorded = losses.size();
  run.training = thinned(training_curve(losses), limit);
  run.evaluations =
      thinned(evaluation_curve(store.evaluation_losses(run.summary.id), losses), limit);
  return run;
}

/// By what they are, not by when they were taken up.
bool comes_before(const store::ConfiguredRun& a, const store::ConfiguredRun& b) {
  const auto rank = [](const store::RunSummary& run) {
    return std::tie(run.config, run.profile, run.seed, run.created, run.id);
  };
  return rank(a.summary) < rank(b.summary);
}

std::vector<Run> runs_below(const std::filesystem::path& runs_dir, const std::string& project) {
  const store::ResultStore store(store::store_path(runs_dir));
  store::RunFilter filter;
  filter.project = project;
  std::vector<store::ConfiguredRun> configured = store.configured_runs(filter);
  std::sort(configured.begin(), configured.end(), comes_before);
  const size_t limit = points_of_a_curve(configured.size());
  std::vector<Run> runs;
  for (store::ConfiguredRun& run : configured) runs.push_back(run_of(std::move(run), store, limit));
  return runs;
}

}  // namespace

Page collect_page(const std::string& project,
                  const std::string& title,
                  const std::vector<Ablation>& tables,
                  const std::filesystem::path& runs_dir) {
  Page page;
  page.project = project;
  page.title = title;
  for (const Ablation& table : tables) page.tables.push_back(table_of(table));
  if (std::filesystem::exists(runs_dir)) page.runs = runs_below(runs_dir, project);
  page.commands = reproduction_commands(tables);
  page.commands.push_back("forge report");
  return page;
}

}  // namespace forge::report::page
