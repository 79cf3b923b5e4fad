#include "core/results/tables/sheet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/verdicts.h"

namespace forge::tables {
namespace {

const char* const missing_text = "\u2014";

bool is_text(ColumnKind kind) {
  return kind == ColumnKind::model || kind == ColumnKind::positions || kind == ColumnKind::notes ||
         kind == ColumnKind::by;
}

/// Columns that say how good a model is.
bool is_quality(const ColumnSpec& column) {
  return column.kind == ColumnKind::metric && results::metric_named(column.metric).is_quality();
}

/// Columns whose values come from the row's runs.
bool is_of_runs(const ColumnSpec& column, const Ablation& ablation) {
  return !is_text(column.kind) && column.kind != ColumnKind::published &&
         !shows_benchmark(column, ablation.table);
}

SheetCell of_text(const std::string& text) {
  return {text.empty() ? missing_text : text, std::nullopt};
}

template <class T, class Format>
SheetCell of_number(const std::optional<T>& metric, Format format) {
  if (!metric) return of_text(missing_text);
  const auto value = static_cast<double>(*metric);
  return {format(value), value};
}

/// Sorted by the throughput.
SheetCell overhead_cell(const AblationRow& row, const Ablation& ablation) {
  if (row.spec.config == ablation.table.baseline) return {"baseline", 0};
  std::vector<std::string> parts;
  if (row.throughput_change)
    parts.push_back("throughput " + results::change_text(*row.throughput_change));
  if (row.memory_change) parts.push_back("memory " + results::change_text(*row.memory_change));
  return {parts.empty() ? missing_text : join(parts, ", "), row.throughput_change};
}

/// Whether another column says how the metric differs from the baseline's.
bool has_difference_beside(const ColumnSpec& column, const Ablation& ablation) {
  const std::vector<ColumnSpec>& columns = ablation.table.columns;
  return std::any_of(columns.begin(), columns.end(), [&](const ColumnSpec& other) {
    return other.kind == ColumnKind::difference && other.metric == column.metric;
  });
}

/// The mean over seeds with its interval, and \u2248 where it differs from the baseline's by noise
/// alone, unless a column of differences says so.
SheetCell mean_cell(const Cell& cell, const ColumnSpec& column, const Ablation& ablation) {
  if (cell.summary.n == 0) return of_text(missing_text);
  const results::Metric metric = *metric_of(column);
  SheetCell shown{results::text(cell.summary.mean, metric), cell.summary.mean};
  shown.interval = cell.summary.interval;
  if (metric.unit == results::Unit::bytes || metric.unit == results::Unit::count) return shown;
  if (cell.summary.interval)
    shown.text += " \u00b1 " + results::half_width_text(
                                   cell.summary.interval->half_width(), cell.summary.mean, metric);
  if (cell.standing == Standing::tie && metric.is_quality() &&
      !has_difference_beside(column, ablation))
    shown.text += " \u2248";
  shown.bold = cell.best;
  return shown;
}

/// The difference to the baseline: alone where it is significant, in parentheses where it is noise.
SheetCell difference_cell(const Cell& cell, const Cell& baseline, const ColumnSpec& column) {
  if (cell.standing == Standing::baseline) return {"baseline", 0.0};
  if (cell.standing == Standing::not_comparable || cell.summary.n == 0)
    return of_text(missing_text);
  const results::Metric metric = *metric_of(column);
  // Before a plan is complete, that of the seeds which both have.
  const double difference =
      cell.difference ? cell.difference->difference : cell.summary.mean - baseline.summary.mean;
  std::vector<double> half_widths;
  if (cell.difference) half_widths.push_back(cell.difference->interval.half_width());
  const auto text_of = results::text_beside(0, half_widths, metric);
  std::string text = (difference < 0 ? "\u2212" : "+") + text_of(std::abs(difference));
  if (cell.difference)
    text += " \u00b1 " + text_of(half_widths.front()) + ", " + results::p_value_text(*cell.p);
  if (cell.standing == Standing::tie) text = "\u2248 (" + text + ")";
  if (cell.standing == Standing::one_seed || cell.standing == Standing::not_tested) text += " ?";
  return {text, difference};
}

/// An expression's value with its interval, where seeds tell one.
SheetCell derived_cell(const AblationRow& row, const ColumnSpec& column, const Ablation& ablation) {
  const Estimate found = derived_value(column, row, ablation);
  if (!found.value) return of_text(missing_text);
  const std::string unit = column.unit.empty() ? "" : " " + column.unit;
  std::string text = results::fixed_text(*found.value, column.precision);
  if (found.interval)
    text += " \u00b1 " + results::fixed_text(found.interval->half_width(), column.precision);
  return {text + unit, *found.value};
}

SheetCell measured_cell(size_t index,
                        const ColumnSpec& column,
                        const CellsByMetric& cells,
                        const Ablation& ablation) {
  const AblationRow& row = ablation.rows[index];
  if (shows_benchmark(column, ablation.table))
    return of_number(tokens_per_second_of(row, ablation.table), results::throughput_text);
  if (!row.completed()) return of_text(missing_text);
  switch (column.kind) {
    case ColumnKind::overhead: return overhead_cell(row, ablation);
    case ColumnKind::varied: return of_number(row.varied, value_text);
    case ColumnKind::seeds:
      return {with_thousands(static_cast<int64_t>(row.runs.size())),
              static_cast<double>(row.runs.size())};
    case ColumnKind::difference: {
      const std::vector<Cell>& of_metric = cells.at(column.metric);
      const AblationRow* baseline = find_row(ablation, ablation.table.baseline, row.group);
      if (!baseline) return of_text(missing_text);
      const auto place = static_cast<size_t>(baseline - ablation.rows.data());
      return difference_cell(of_metric[index], of_metric[place], column);
    }
    case ColumnKind::derived: return derived_cell(row, column, ablation);
    default: return mean_cell(cells.at(column.metric)[index], column, ablation);
  }
}

SheetCell published_cell(const std::optional<PublishedResult>& result, const std::string& metric) {
  if (!result) return of_text(missing_text);
  if (metric == results::eval_loss_name) return of_number(result->eval_loss, results::loss_text);
  if (metric == results::tokens_per_second_name)
    return of_number(result->tokens_per_second, results::throughput_text);
  return of_number(result->peak_memory_gib,
                   [](double gib) { return human_bytes(gib * (int64_t{1} << 30)); });
}

/// Of a row without notes it is empty: nothing is missing.
SheetCell spec_cell(const RowSpec& row, ColumnKind kind) {
  switch (kind) {
    case ColumnKind::model: return {row.name, std::nullopt};
    case ColumnKind::positions: return of_text(row.positions);
    default: return {row.notes, std::nullopt};
  }
}

SheetCell cell_of(size_t index,
                  const ColumnSpec& column,
                  const CellsByMetric& cells_of_metric,
                  const Ablation& ablation) {
  const AblationRow& row = ablation.rows[index];
  if (column.kind == ColumnKind::by) return of_text(row.group);
  if (is_text(column.kind)) return spec_cell(row.spec, column.kind);
  if (column.kind == ColumnKind::published) return published_cell(row.published, column.metric);
  return measured_cell(index, column, cells_of_metric, ablation);
}

/// That a better value may lie beyond those that were tried, which are the ones with a completed
/// run or one that diverged; "" where the best lies between others, or nothing else was tried.
std::string edge_note(const AblationRow& row, const Ablation& ablation) {
  if (!row.completed() || !row.varied) return "";
  std::vector<double> values;
  for (const SweepPoint& point : row.points) {
    if (point.is_tried()) values.push_back(point.value);
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (values.size() < 2 || (*row.varied != *least && *row.varied != *most)) return "";
  return "the best " + ablation.table.best_of->key + " is the " +
         (*row.varied == *least ? "smallest" : "largest") +
         " of those completed: a better one may lie beyond";
}

/// Why the row has no metrics, in a sentence; "" where its state says all.
std::string footnote_of(const AblationRow& row) {
  if (!row.run || row.completed()) return "";
  const store::RunSummary& run = *row.run;
  if (run.status == run::RunState::stopped) {
    return run.config + ": stopped; " +
           quoted_command("forge runs resume " + shell_quoted(run.id)) +
           " resumes from its newest checkpoint";
  }
  if (run.status != run::RunState::failed) return "";
  const std::string reason =
      run.failure_reason.empty() ? "no reason was recorded" : run.failure_reason;
  const std::string hint = run.failure_hint.empty() ? "" : " (" + run.failure_hint + ")";
  return run.config + ": " + reason + hint;
}

/// The runs of a completed row that lack the loss or score of the column, for which it shows none.
std::vector<std::string> lacking_runs(const AblationRow& row, const ColumnSpec& column) {
  std::vector<std::string> runs;
  if (!is_quality(column) || results::metric_named(column.metric).source == results::Source::table)
    return runs;
  for (const store::RunSummary& run : row.runs) {
    if (!run.metric(column.metric)) runs.push_back(run.id);
  }
  return runs;
}

/// Which losses and scores of the columns a completed row does not have, and because of which runs,
/// in a sentence; "" where it has all.
std::string missing_scores_note(const AblationRow& row, const std::vector<ColumnSpec>& columns) {
  std::vector<std::string> metrics, lacking;
  for (const ColumnSpec& column : columns) {
    const std::vector<std::string> runs = lacking_runs(row, column);
    if (!runs.empty()) metrics.push_back(column.metric);
    for (const std::string& run : runs) {
      if (std::find(lacking.begin(), lacking.end(), run) == lacking.end()) lacking.push_back(run);
    }
  }
  if (metrics.empty()) return "";
  const std::string what = "no " + join(metrics, ", ");
  // Every evaluation has an eval_loss. What no seed has was not asked for.
  const bool is_damage =
      lacking.size() < row.runs.size() ||
      std::find(metrics.begin(), metrics.end(), results::eval_loss_name) != metrics.end();
  if (!is_damage) return what + " in the run's last evaluation";
  return what + " in the events of " + join(lacking, ", ") + ": they may be damaged" +
         (row.runs.size() == 1 ? "" : "; a mean needs the value of every seed");
}

/// What is to be said of a measured speed, in a sentence; "" for nothing.
std::string speed_note(const AblationRow& row, const Ablation& ablation) {
  if (row.speed) return row.speed->not_comparable_because;
  return "not measured; '" + bench_command(ablation.table) + "' measures all rows in one call";
}

/// How many rows the runs computed at once, the fewest of them, where their throughput and memory
/// are no comparison for it; else "".
std::string micro_batch_note(const AblationRow& row) {
  if (row.same_micro_batch) return "";
  std::optional<int64_t> rows;
  for (const store::RunSummary& run : row.runs) {
    if (run.micro_batch_size)
      rows = std::min(rows.value_or(std::numeric_limits<int64_t>::max()), *run.micro_batch_size);
  }
  const std::string count = rows ? std::to_string(*rows) : "all";
  return count + (rows == 1 ? " row of a step was" : " rows of a step were") + " computed at once" +
         ", unlike the baseline's: its throughput and memory are not comparable";
}

/// Which backend computed the row where it was not the baseline's; else "", also of a row that is
/// not comparable anyway.
std::string backend_note(const AblationRow& row) {
  if (row.same_backend || !row.is_comparable()) return "";
  return "computed by backend " + row.run->backend +
         ", unlike the baseline: its loss is comparable, its throughput and memory are not";
}

std::string processes_note(const AblationRow& row) {
  if (row.same_processes) return "";
  std::set<std::string> counts;
  for (const store::RunSummary& run : row.runs)
    counts.insert(plain_text(store::processes_value(run)));
  if (counts.size() > 1)
    return "trained by " + join({counts.begin(), counts.end()}, " and ") +
           " processes: its losses are one sample, its throughput and memory are not";
  return "trained by " + store::processes_text(*row.run) +
         (store::is_mixed(row.run->processes) ? "" : ", unlike the baseline") +
         ": its loss is comparable, its throughput and memory are not";
}

std::string recompute_note(const AblationRow& row) {
  if (row.same_recompute) return "";
  std::map<std::string, std::vector<std::string>> runs;
  for (const store::RunSummary& run : row.runs) runs[run.recompute].push_back(run.id);
  std::vector<std::string> ways;
  for (const auto& [recompute, ids] : runs) ways.push_back(recompute + " (" + first_of(ids) + ")");
  return "trained with train.recompute " + join(ways, " and with ") +
         (ways.size() > 1
              ? ": its losses are one sample, its throughput and memory are not"
              : std::string(store::is_mixed(row.run->recompute) ? "" : ", unlike the baseline") +
                    ": its loss is comparable, its throughput and memory are not");
}

std::string device_note(const AblationRow& row) {
  if (row.same_device) return "";
  std::set<std::string> devices;
  for (const store::RunSummary& run : row.runs)
    devices.insert(run.device_name +
                   (run.device_type == "cpu" ? ", " + counted(run.threads, "thread") : ""));
  const std::vector<std::string> names(devices.begin(), devices.end());
  if (names.size() > 1)
    return "trained on " + join(names, " and on ") +
           ": its losses are one sample, its throughput and memory are not";
  return "trained on " + names.front() +
         (store::is_mixed(row.run->device_name) ? "" : ", unlike the baseline") +
         ": its loss is comparable, its throughput and memory are not";
}

/// Columns whose values depend on how the rows of a step are computed.
bool depends_on_way_of_computing(const ColumnSpec& column, const Ablation& ablation) {
  return column.kind == ColumnKind::metric && !shows_benchmark(column, ablation.table) &&
         results::metric_named(column.metric).depends_on_device;
}

/// The configs whose runs trained beside other work.
std::vector<std::string> loaded_configs(const Ablation& ablation) {
  std::vector<std::string> configs;
  for (const AblationRow& row : ablation.rows) {
    const bool is_new = configs.empty() || configs.back() != row.spec.config;
    if (was_loaded(row) && is_new) configs.push_back(row.spec.config);
  }
  return configs;
}

/// What else the machine did while such rows' runs trained: one sentence for all of them.
std::string load_note(const Ablation& ablation) {
  Sample all;
  for (const AblationRow& row : ablation.rows)
    all.runs.insert(all.runs.end(), row.runs.begin(), row.runs.end());
  return unreliable_timing_text(loaded_configs(ablation), all);
}

/// The mark that leads to a footnote, which is added where it is not there; "" for none.
std::string mark_of(const std::string& footnote, std::vector<std::string>& footnotes) {
  if (footnote.empty()) return "";
  const auto found = std::find(footnotes.begin(), footnotes.end(), footnote);
  const auto number = found - footnotes.begin() + 1;
  if (found == footnotes.end()) footnotes.push_back(footnote);
  return " [" + std::to_string(number) + "]";
}

/// In what the row must not differ from the table, in a sentence; "" for nothing.
std::string violation_note(const AblationRow& row) {
  if (row.is_comparable()) return "";
  return row.spec.config + " cannot be compared: " + join(row.violations, "; ");
}

/// That the row's runs are not those of its config as it is now, in a sentence; "" where they are.
std::string config_note(const AblationRow& row) {
  if (row.differs_from_config.empty()) return "";
  return "made with other settings than the config has now: " + first_of(row.differs_from_config);
}

/// Of a row with one seed where others have several, or beside a baseline with one: what its metric
/// may be off by.
std::string noise_note(const Cell& cell, const ColumnSpec& column, const Ablation& ablation) {
  if (!cell.noise) return "";
  return std::string(cell.summary.n < 2 ? "one seed counts" : "of the baseline one seed counts") +
         ": by the spread of other rows' seeds, a difference from the baseline below " +
         results::text(*cell.noise, *metric_of(column)) + " may be noise; more seeds: '" +
         table_command(ablation) + " --seeds 3'";
}

/// Why a difference is marked "?"; "" if it is not.
std::string untested_note(const Cell& cell) {
  return cell.why_not_tested.empty() ? "" : "not tested: " + cell.why_not_tested;
}

/// That the difference, or what is said of it, is not that of the means shown; "" if it is.
std::string common_seeds_note(const Cell& cell,
                              const AblationRow& row,
                              const ColumnSpec& column,
                              const Ablation& ablation) {
  const bool is_about_difference = column.kind == ColumnKind::difference ||
                                   (is_quality(column) && !has_difference_beside(column, ablation));
  const AblationRow* baseline = find_row(ablation, ablation.table.baseline, row.group);
  if (cell.common_seeds == 0 || !is_about_difference || !baseline) return "";
  return row.spec.config + " has " + counted(row.runs.size(), "seed") + ", " +
         baseline->spec.config + " " + std::to_string(baseline->runs.size()) +
         ": they are compared by the " + std::to_string(cell.common_seeds) +
         " that both have, and the difference is not that of the means shown";
}

/// The row's cells. A run that is not completed says so in the first column of metrics.
std::vector<SheetCell> row_cells(size_t index,
                                 const std::vector<ColumnSpec>& columns,
                                 const CellsByMetric& cells_of_metric,
                                 const Ablation& ablation,
                                 std::vector<std::string>& footnotes) {
  const AblationRow& row = ablation.rows[index];
  const std::string state_mark =
      mark_of(footnote_of(row), footnotes) + mark_of(violation_note(row), footnotes) +
      mark_of(config_note(row), footnotes) + mark_of(changed_inputs_text(row), footnotes);
  const bool shows_cost =
      std::any_of(columns.begin(), columns.end(), [&](const ColumnSpec& column) {
        return column.kind == ColumnKind::overhead || depends_on_way_of_computing(column, ablation);
      });
  const std::string diverged =
      ablation.table.best_of ? divergence_text(row, *ablation.table.best_of) : "";
  const std::string choice_mark =
      mark_of(diverged, footnotes) + mark_of(edge_note(row, ablation), footnotes);
  const bool shows_value =
      std::any_of(columns.begin(), columns.end(), [](const ColumnSpec& column) {
        return column.kind == ColumnKind::varied;
      });
  const std::string score_mark = mark_of(missing_scores_note(row, columns), footnotes);
  const std::string micro_batch_mark = shows_cost ? mark_of(micro_batch_note(row), footnotes) : "";
  const std::string way_mark =
      mark_of(backend_note(row), footnotes) + mark_of(processes_note(row), footnotes) +
      mark_of(recompute_note(row), footnotes) + mark_of(device_note(row), footnotes);
  const bool shows_time =
      std::any_of(columns.begin(), columns.end(), [&](const ColumnSpec& column) {
        return depends_on_time(column, ablation.table);
      });
  const std::string load_mark =
      shows_time && was_loaded(row) ? mark_of(load_note(ablation), footnotes) : "";
  std::vector<SheetCell> cells;
  bool state_shown = false;
  for (const ColumnSpec& column : columns) {
    SheetCell cell = cell_of(index, column, cells_of_metric, ablation);
    if (is_of_runs(column, ablation) && !state_shown) {
      if (!row.completed()) cell.text = state_text(row);
      cell.text += state_mark + (shows_value ? "" : choice_mark) + (shows_cost ? "" : way_mark);
      state_shown = true;
    }
    if (column.kind == ColumnKind::varied) cell.text += choice_mark;
    if (!lacking_runs(row, column).empty()) cell.text += score_mark;
    const bool depends = depends_on_way_of_computing(column, ablation);
    if (depends || column.kind == ColumnKind::overhead) cell.text += micro_batch_mark + way_mark;
    if (depends_on_time(column, ablation.table)) cell.text += load_mark;
    if (is_quality(column))
      cell.text += mark_of(noise_note(cells_of_metric.at(column.metric)[index], column, ablation),
                           footnotes);
    if (column.kind == ColumnKind::difference)
      cell.text += mark_of(untested_note(cells_of_metric.at(column.metric)[index]), footnotes);
    if (metric_of(column))
      cell.text += mark_of(
          common_seeds_note(cells_of_metric.at(column.metric)[index], row, column, ablation),
          footnotes);
    if (shows_benchmark(column, ablation.table)) {
      cell.text += mark_of(speed_note(row, ablation), footnotes);
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace

std::vector<std::string> excluded_lines(const std::vector<ExcludedRuns>& excluded) {
  std::vector<std::string> lines;
  for (const ExcludedRuns& entry : excluded) {
    constexpr size_t most = 3;
    std::vector<std::string> ids = entry.runs;
    if (ids.size() > most) {
      ids.resize(most);
      ids.emplace_back("\u2026");
    }
    const std::string count =
        entry.runs.size() == 1 ? "" : with_thousands(int64_t(entry.runs.size())) + " runs: ";
    lines.push_back(entry.config + ": " + entry.reason + " (" + count + join(ids, ", ") + ")");
  }
  return lines;
}

std::vector<ColumnSpec> shown_columns(const Ablation& ablation) {
  std::vector<ColumnSpec> columns;
  for (const ColumnSpec& column : ablation.table.columns) {
    if (ablation.published || column.kind != ColumnKind::published) columns.push_back(column);
  }
  return columns;
}

/// All that each row was chosen from: "canon_a: optimizer.lr 0.0005 0.4100, 0.001 0.5230, …".
std::vector<std::string> sweep_lines(const Ablation& ablation) {
  std::vector<std::string> lines;
  if (!ablation.table.best_of) return lines;
  const BestOfSpec& spec = *ablation.table.best_of;
  for (const AblationRow& row : ablation.rows) {
    std::vector<std::string> points;
    for (const SweepPoint& point : row.points) {
      if (point.has_diverged()) {
        points.push_back(value_text(point.value) + ": " + divergence_text(point));
        continue;
      }
      const std::optional<double> mean = mean_of(point.runs, spec.by);
      const std::string seeds =
          point.runs.size() > 1 ? " (" + std::to_string(point.runs.size()) + " seeds)" : "";
      const std::string without = point.is_archived   ? "archived"
                                  : point.is_left_out ? "left out"
                                                      : missing_text;
      points.push_back(value_text(point.value) + ": " +
                       (mean ? results::text(*mean, results::metric_named(spec.by)) : without) +
                       seeds);
    }
    lines.push_back(row.spec.name + ": " + spec.by + " by " + spec.key + " " + join(points, ", "));
  }
  return lines;
}

std::string line_above(const Ablation& ablation) {
  std::vector<std::string> texts;
  for (const SetupEntry& entry : ablation.setup)
    if (!entry.short_text.empty()) texts.push_back(entry.short_text);
  return join(texts, " \u00b7 ");
}

Sheet make_sheet(const Ablation& ablation) {
  Sheet sheet;
  sheet.title = ablation.table.title;
  sheet.setup = line_above(ablation);
  const std::vector<ColumnSpec> columns = shown_columns(ablation);
  for (const ColumnSpec& column : columns) {
    const bool is_prose = column.kind == ColumnKind::overhead || column.kind == ColumnKind::notes;
    sheet.columns.push_back({column.title, !is_text(column.kind) && !is_prose, is_prose});
  }
  const Verdicts verdicts = verdicts_of(ablation);
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    sheet.rows.push_back(row_cells(i, columns, verdicts.cells, ablation, sheet.footnotes));
  }
  for (const JudgedClaim& judged : verdicts.claims) sheet.verdicts.push_back(verdict_line(judged));
  sheet.points = sweep_lines(ablation);
  sheet.commands = missing_commands(ablation);
  sheet.excluded = excluded_lines(ablation.excluded);
  if (ablation.published) {
    const Published& published = *ablation.published;
    sheet.notes.push_back("Published figures: " + published.source +
                          (published.url.empty() ? "" : ", " + published.url));
    if (!published.setup.empty()) sheet.notes.push_back("Their setup: " + published.setup);
  }
  return sheet;
}

}  // namespace forge::tables
