#include "core/report/sheet.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/report/claims.h"
#include "core/report/commands.h"
#include "core/report/figures.h"

namespace forge::report {
namespace {

const char* const nothing = "\u2014";

bool is_text(ColumnKind kind) {
  return kind == ColumnKind::model || kind == ColumnKind::positions || kind == ColumnKind::notes ||
         kind == ColumnKind::by;
}

bool is_benchmark(ColumnKind kind, const Ablation& ablation) {
  return kind == ColumnKind::tokens_per_second &&
         ablation.table.tokens_per_second == SpeedSource::benchmark;
}

/// Columns whose figures come from the row's run.
bool is_measured(ColumnKind kind, const Ablation& ablation) {
  return !is_text(kind) && !is_published(kind) && !is_benchmark(kind, ablation);
}

SheetCell of_text(const std::string& text) { return {text.empty() ? nothing : text, std::nullopt}; }

template <class T, class Format>
SheetCell of_figure(const std::optional<T>& figure, Format format) {
  if (!figure) return of_text(nothing);
  const auto value = static_cast<double>(*figure);
  return {format(value), value};
}

/// Sorted by the throughput.
SheetCell overhead_cell(const AblationRow& row, const Ablation& ablation) {
  if (row.spec.config == ablation.table.baseline) return {"baseline", 0};
  std::vector<std::string> parts;
  if (row.throughput_change) parts.push_back("throughput " + change_text(*row.throughput_change));
  if (row.memory_change) parts.push_back("memory " + change_text(*row.memory_change));
  return {parts.empty() ? nothing : join(parts, ", "), row.throughput_change};
}

bool in_percent(const ColumnSpec& column) {
  if (column.format == ScoreFormat::by_name) return is_share(column.score);
  return column.format == ScoreFormat::percent;
}

SheetCell measured_cell(const AblationRow& row,
                        const ColumnSpec& column,
                        const Ablation& ablation) {
  if (column.kind == ColumnKind::tokens_per_second) {
    return of_figure(tokens_per_second_of(row, ablation.table), throughput_text);
  }
  if (!row.completed()) return of_text(nothing);
  const store::RunSummary& run = *row.run;
  switch (column.kind) {
    case ColumnKind::parameters:
      return {with_thousands(run.parameters), static_cast<double>(run.parameters)};
    case ColumnKind::eval_loss: return of_figure(run.eval_loss, loss_text);
    case ColumnKind::train_loss: return of_figure(run.train_loss, loss_text);
    case ColumnKind::peak_memory: return of_figure(run.peak_memory_bytes, memory_text);
    case ColumnKind::overhead: return overhead_cell(row, ablation);
    case ColumnKind::score:
      return of_figure(figure_of(run, column.score),
                       [&](double value) { return score_text(value, in_percent(column)); });
    case ColumnKind::varied: return of_figure(row.varied, shortest);
    default: return of_text(nothing);
  }
}

SheetCell published_cell(const std::optional<PublishedFigure>& figure, ColumnKind kind) {
  if (!figure) return of_text(nothing);
  switch (kind) {
    case ColumnKind::published_eval_loss: return of_figure(figure->eval_loss, loss_text);
    case ColumnKind::published_tokens_per_second:
      return of_figure(figure->tokens_per_second, throughput_text);
    case ColumnKind::published_peak_memory:
      return of_figure(figure->peak_memory_gib,
                       [](double gib) { return memory_text(gib * (int64_t{1} << 30)); });
    default: return of_text(nothing);
  }
}

/// A row without notes has none, which is not a figure that is missing.
SheetCell spec_cell(const RowSpec& row, ColumnKind kind) {
  switch (kind) {
    case ColumnKind::model: return {row.name, std::nullopt};
    case ColumnKind::positions: return of_text(row.positions);
    default: return {row.notes, std::nullopt};
  }
}

SheetCell cell_of(const AblationRow& row, const ColumnSpec& column, const Ablation& ablation) {
  if (column.kind == ColumnKind::by) return of_text(row.division);
  if (is_text(column.kind)) return spec_cell(row.spec, column.kind);
  if (is_published(column.kind)) return published_cell(row.published, column.kind);
  return measured_cell(row, column, ablation);
}

/// What a completed row is the best of, where runs are lacking; else "".
std::string lacking_values(const AblationRow& row, const Ablation& ablation) {
  const std::vector<std::string> values = open_values(row);
  if (values.empty()) return "";
  return "the best of " + std::to_string(row.points.size() - values.size()) + " of " +
         std::to_string(row.points.size()) + "; not completed with " + ablation.table.best_of->key +
         " " + join(values, ", ");
}

/// Why the row has no figures, in a sentence; "" where its state says all.
std::string footnote_of(const AblationRow& row, const Ablation& ablation) {
  if (!row.run) return "";
  if (row.completed()) return lacking_values(row, ablation);
  const store::RunSummary& run = *row.run;
  if (run.status == run::RunState::stopped) {
    return run.config + ": stopped; 'forge run " + run.config + "' goes on where it was";
  }
  if (run.status != run::RunState::failed) return "";
  const std::string reason =
      run.failure_reason.empty() ? "no reason was recorded" : run.failure_reason;
  const std::string hint = run.failure_hint.empty() ? "" : " (" + run.failure_hint + ")";
  return run.config + ": " + reason + hint;
}

bool lacks_score(const AblationRow& row, const ColumnSpec& column) {
  return column.kind == ColumnKind::score && row.completed() && !figure_of(*row.run, column.score);
}

/// Which scores of the columns a completed row does not have, in a sentence; "" where it has all.
std::string lacking_scores(const AblationRow& row, const std::vector<ColumnSpec>& columns) {
  std::vector<std::string> scores;
  for (const ColumnSpec& column : columns) {
    if (lacks_score(row, column)) scores.push_back(column.score);
  }
  if (scores.empty()) return "";
  return "no " + join(scores, ", ") + " in the run's last evaluation";
}

/// What is to be said of a measured speed, in a sentence; "" for nothing.
std::string speed_note(const AblationRow& row, const Ablation& ablation) {
  if (row.speed) return row.speed->otherwise;
  return "not measured; '" + bench_command(ablation.table) + "' measures all rows in one call";
}

/// How many rows the run computed at once, where its throughput and memory are no comparison for
/// it; else "".
std::string micro_batch_note(const AblationRow& row) {
  if (row.same_micro_batch) return "";
  const std::optional<int64_t> rows = row.run->micro_batch_size;
  const std::string count = rows ? std::to_string(*rows) : "all";
  return count + (rows == 1 ? " row of a step was" : " rows of a step were") + " computed at once" +
         ", unlike the baseline's: its throughput and memory are not comparable";
}

/// Columns that say what so many rows at once cost.
bool depends_on_micro_batch(const ColumnSpec& column, const Ablation& ablation) {
  return (column.kind == ColumnKind::tokens_per_second && !is_benchmark(column.kind, ablation)) ||
         column.kind == ColumnKind::peak_memory;
}

/// The mark that leads to a footnote, which is added where it is not there; "" for none.
std::string mark_of(const std::string& footnote, std::vector<std::string>& footnotes) {
  if (footnote.empty()) return "";
  const auto found = std::find(footnotes.begin(), footnotes.end(), footnote);
  const auto number = found - footnotes.begin() + 1;
  if (found == footnotes.end()) footnotes.push_back(footnote);
  return " [" + std::to_string(number) + "]";
}

/// The row's cells. A run that is not completed says so in the first column of figures.
std::vector<SheetCell> cells_of(const AblationRow& row,
                                const std::vector<ColumnSpec>& columns,
                                const Ablation& ablation,
                                std::vector<std::string>& footnotes) {
  const std::string state_mark = mark_of(footnote_of(row, ablation), footnotes);
  const std::string score_mark = mark_of(lacking_scores(row, columns), footnotes);
  const std::string micro_batch_mark = mark_of(micro_batch_note(row), footnotes);
  std::vector<SheetCell> cells;
  bool state_is_told = false;
  for (const ColumnSpec& column : columns) {
    SheetCell cell = cell_of(row, column, ablation);
    if (is_measured(column.kind, ablation) && !state_is_told) {
      if (!row.completed()) cell.text = state_text(row);
      cell.text += state_mark;
      state_is_told = true;
    }
    if (lacks_score(row, column)) cell.text += score_mark;
    if (depends_on_micro_batch(column, ablation)) cell.text += micro_batch_mark;
    if (is_benchmark(column.kind, ablation)) {
      cell.text += mark_of(speed_note(row, ablation), footnotes);
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<std::string> left_out_lines(const Ablation& ablation) {
  std::vector<std::string> lines;
  for (const LeftOut& entry : ablation.left_out) {
    const std::string count = entry.runs == 1 ? "" : " (" + std::to_string(entry.runs) + " runs)";
    lines.push_back(entry.config + ": " + entry.reason + count);
  }
  return lines;
}

}  // namespace

std::vector<ColumnSpec> shown_columns(const Ablation& ablation) {
  std::vector<ColumnSpec> columns;
  for (const ColumnSpec& column : ablation.table.columns) {
    if (ablation.published || !is_published(column.kind)) columns.push_back(column);
  }
  return columns;
}

Sheet make_sheet(const Ablation& ablation) {
  Sheet sheet;
  sheet.title = ablation.table.title;
  const std::vector<ColumnSpec> columns = shown_columns(ablation);
  for (const ColumnSpec& column : columns) {
    const bool is_prose = column.kind == ColumnKind::overhead || column.kind == ColumnKind::notes;
    sheet.columns.push_back({column.title, !is_text(column.kind) && !is_prose, is_prose});
  }
  for (const AblationRow& row : ablation.rows) {
    sheet.rows.push_back(cells_of(row, columns, ablation, sheet.footnotes));
  }
  for (const Verdict& verdict : judge_claims(ablation)) {
    sheet.verdicts.push_back(verdict_line(verdict));
  }
  sheet.commands = missing_commands(ablation);
  sheet.left_out = left_out_lines(ablation);
  if (ablation.published) {
    const Published& published = *ablation.published;
    sheet.sources.push_back("Published figures: " + published.source +
                            (published.url.empty() ? "" : ", " + published.url));
    if (!published.setup.empty()) sheet.sources.push_back("Their setup: " + published.setup);
  }
  return sheet;
}

}  // namespace forge::report
