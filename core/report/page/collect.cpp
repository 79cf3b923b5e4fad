#include "core/report/page/collect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

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

Meaning meaning_of(const ColumnSpec& column) {
  switch (column.kind) {
    case ColumnKind::eval_loss:
    case ColumnKind::train_loss:
    case ColumnKind::published_eval_loss: return {Better::lower, false};
    case ColumnKind::parameters:
    case ColumnKind::peak_memory:
    case ColumnKind::published_peak_memory: return {Better::lower, true};
    case ColumnKind::tokens_per_second:
    case ColumnKind::overhead:
    case ColumnKind::published_tokens_per_second: return {Better::higher, true};
    case ColumnKind::score:
      return {is_share(column.score) ? Better::higher : Better::unknown, false};
    default: return {};
  }
}

/// The runs that a row shows, then those that it was chosen from.
std::vector<std::string> runs_of(const AblationRow& row) {
  std::vector<std::string> ids;
  const auto add = [&](const Sample& sample) {
    std::vector<store::RunSummary> runs = sample.runs;
    if (runs.empty() && sample.run) runs.push_back(*sample.run);
    for (const store::RunSummary& run : runs) {
      if (std::find(ids.begin(), ids.end(), run.id) == ids.end()) ids.push_back(run.id);
    }
  };
  add(row);
  for (const Point& point : row.points) add(point);
  return ids;
}

Table table_of(const Ablation& ablation) {
  Table table;
  table.name = ablation.table.name;
  table.sheet = make_sheet(ablation);
  table.setup = ablation.setup;
  for (const ColumnSpec& column : shown_columns(ablation))
    table.meanings.push_back(meaning_of(column));
  for (const AblationRow& row : ablation.rows) table.runs.push_back(runs_of(row));
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
