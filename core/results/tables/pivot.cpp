#include "core/results/tables/pivot.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/made_runs.h"
#include "core/run/identity.h"
#include "core/worker/json_fields.h"

namespace forge::tables {
namespace {

using Json = nlohmann::ordered_json;
using store::ConfiguredRun;

/// A run with what the table asks of it, found out once.
struct PivotRun {
  const ConfiguredRun* run = nullptr;
  nlohmann::json row;
  nlohmann::json column;
  nlohmann::json setup;  ///< all that may change the metric but the seed
};

/// The label of a row or column: nothing and an empty text can be told apart.
std::string label_of(const nlohmann::json& value) {
  if (value.is_null()) return "\u2014";
  if (value == "") return "\"\"";
  return plain_text(value);
}

/// Numbers before texts, each in their order.
bool comes_before(const nlohmann::json& a, const nlohmann::json& b) {
  if (a.is_number() != b.is_number()) return a.is_number();
  return a < b;
}

/// The values, each once, in order.
std::vector<nlohmann::json> each_once(std::vector<nlohmann::json> values) {
  std::sort(values.begin(), values.end(), comes_before);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

nlohmann::json setup_of(const ConfiguredRun& run, const std::string& metric) {
  const run::Identity identity = setup_for(metric, run);
  nlohmann::json setup = worker::write_fields(identity);
  setup.erase("experiment");
  setup.update(identity.experiment);
  return setup;
}

/// Why no mean of the metric may hold the run's; "" where it may.
std::string why_not_alike(const store::RunSummary& run, const std::string& metric) {
  if (!results::metric_named(metric).depends_on_device || !has_mixed_attempts(run)) return "";
  return "its attempts ran on " + run.device_name +
         (store::is_mixed(run.processes) ? " by " + store::processes_text(run) : "") +
         (store::is_mixed(run.recompute) ? " with train.recompute " + run.recompute : "");
}

/// Adds the dotted names of the values in which two objects differ.
void add_differing(const nlohmann::json& a,
                   const nlohmann::json& b,
                   const std::string& path,
                   std::set<std::string>& names) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    names.insert(path);
    return;
  }
  nlohmann::json keys = a;
  keys.update(b);
  for (const auto& [key, ignored] : keys.items())
    add_differing(a.value(key, nlohmann::json()),
                  b.value(key, nlohmann::json()),
                  path.empty() ? key : path + "." + key,
                  names);
}

/// The names of what differs between runs.
std::set<std::string> differing(const std::vector<const PivotRun*>& runs) {
  std::set<std::string> names;
  for (const PivotRun* run : runs) add_differing(runs.front()->setup, run->setup, "", names);
  return names;
}

/// The names that no key of the table covers.
std::vector<std::string> without_keys(const std::set<std::string>& names,
                                      const PivotOptions& options) {
  std::vector<std::string> others;
  for (const std::string& name : names) {
    const auto is_key = [&](const std::string& key) {
      return !key.empty() && (name == key || starts_with(name, key + "."));
    };
    if (!is_key(options.rows) && !is_key(options.columns)) others.push_back(name);
  }
  return others;
}

/// A metric that no run has is most likely a misspelt one.
void require_metric(const std::vector<ConfiguredRun>& runs, const std::string& metric) {
  std::vector<std::string> known = results::run_metric_names();
  for (const ConfiguredRun& run : runs) {
    for (const auto& [name, score] : run.summary.scores) {
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  if (std::find(known.begin(), known.end(), metric) != known.end()) return;
  throw Error("no run has the metric '" + metric + "'",
              did_you_mean(metric, known, "metrics: " + join(known, ", ")));
}

/// A mean of those that remain is the better one: tells which seeds of the cell's settings were
/// stopped, failed or diverged. Returns of how many runs.
size_t exclude_ended_early(const std::vector<PivotRun>& ended_early,
                           const std::vector<const PivotRun*>& cell,
                           const Sample& sample,
                           std::vector<ExcludedRuns>& excluded) {
  const auto shown = std::find_if(cell.begin(), cell.end(), [&](const PivotRun* run) {
    return run->run->summary.id == sample.run->id;
  });
  size_t count = 0;
  if (shown == cell.end()) return count;
  for (const PivotRun& run : ended_early) {
    const auto is_its_seed = [&](const store::RunSummary& other) {
      return other.seed == run.run->summary.seed;
    };
    if (run.row == (*shown)->row && run.column == (*shown)->column &&
        run.setup == (*shown)->setup &&
        std::none_of(sample.runs.begin(), sample.runs.end(), is_its_seed)) {
      exclude(run.run->summary, state_text(run.run->summary), excluded);
      ++count;
    }
  }
  return count;
}

PivotCell cell_of(const Sample& sample, const std::string& metric) {
  PivotCell cell;
  std::vector<double> values;
  for (const store::RunSummary& run : sample.runs) {
    cell.runs.push_back(run.id);
    values.push_back(*run.metric(metric));
  }
  if (values.empty()) return cell;
  AblationRow row;
  static_cast<Sample&>(row) = sample;
  cell.summary =
      statistics::summarize(values, 0, statistics::default_confidence, cases_of(row, metric));
  const auto score = sample.run->scores.find(metric);
  if (score != sample.run->scores.end()) cell.cases = score->second.count;
  return cell;
}

SheetCell shown_cell(const PivotCell& cell, const std::string& metric) {
  if (cell.summary.n == 0) return {"\u2014", std::nullopt};
  const results::Metric shown = results::metric_named(metric);
  std::string text = results::text(cell.summary.mean, shown);
  const bool is_size = shown.unit == results::Unit::bytes || shown.unit == results::Unit::count;
  if (cell.summary.interval && !is_size)
    text += " \u00b1 " +
            results::half_width_text(cell.summary.interval->half_width(), cell.summary.mean, shown);
  if (cell.summary.n > 1) text += " (" + std::to_string(cell.summary.n) + ")";
  if (!cell.disturbance.empty()) text += " [1]";  // the only footnote
  return {text, cell.summary.mean};
}

/// What holds for the cells as a whole.
std::vector<std::string> notes_on(const Pivot& pivot) {
  std::vector<std::string> notes;
  if (!pivot.differ_between_cells.empty())
    notes.push_back("The cells differ in more than the table shows: " +
                    join(pivot.differ_between_cells, ", "));
  if (pivot.without > 0)
    notes.push_back("Completed runs without " + pivot.options.metric + ": " +
                    std::to_string(pivot.without));
  notes.insert(notes.end(), pivot.changed_inputs.begin(), pivot.changed_inputs.end());
  return notes;
}

/// A number of CSV; "" for none.
std::string number_field(const std::optional<double>& value) {
  if (!value) return "";
  return std::isfinite(*value) ? json_text(nlohmann::json(*value)) : shortest(*value);
}

/// JSON has no numbers for nan and infinity: "nan", "inf", as in declared tables.
Json mean_json(double mean) { return std::isfinite(mean) ? Json(mean) : Json(shortest(mean)); }

/// "eval_loss<2, profile=quick", "" without a filter.
std::string filter_text(const PivotOptions& options) { return join(options.filter, ", "); }

/// Whether a cell has a number of cases.
bool has_cases(const Pivot& pivot) {
  return results::metric_named(pivot.options.metric).source == results::Source::task;
}

}  // namespace

Pivot build_pivot(const std::vector<ConfiguredRun>& runs,
                  const PivotOptions& options,
                  const std::vector<ConfiguredRun>& filtered_out) {
  store::require_names({options.rows});
  if (!options.columns.empty()) store::require_names({options.columns});
  require_metric(runs, options.metric);
  Pivot pivot;
  pivot.options = options;
  std::vector<PivotRun> completed, ended_early;
  for (const ConfiguredRun* run : newest_first(runs)) {
    if (run->summary.status != run::RunState::completed) {
      if (tells(*run)) ended_early.push_back({run, {}, {}, {}});
      continue;
    }
    if (!run->summary.metric(options.metric)) {
      ++pivot.without;
    } else if (const std::string why = why_not_alike(run->summary, options.metric); !why.empty()) {
      exclude(run->summary, why, pivot.excluded);
    } else if (const std::string repeated = why_repeated(run->summary); !repeated.empty()) {
      exclude(run->summary, repeated, pivot.excluded);
    } else {
      completed.push_back({run, {}, {}, {}});
    }
  }
  std::vector<PivotRun> hidden;
  for (const ConfiguredRun* run : newest_first(filtered_out))
    if (is_completed(run) && run->summary.metric(options.metric))
      hidden.push_back({run, {}, {}, {}});
  const auto find_out = [&](std::vector<PivotRun>& of_runs) {
    parallel_for(of_runs.size(), [&](size_t i) {
      const ConfiguredRun& run = *of_runs[i].run;
      of_runs[i].row = store::value_of(run, options.rows);
      if (!options.columns.empty()) of_runs[i].column = store::value_of(run, options.columns);
      of_runs[i].setup = setup_of(run, options.metric);
    });
  };
  find_out(completed);
  find_out(ended_early);
  find_out(hidden);
  std::vector<nlohmann::json> rows, columns;
  for (const PivotRun& pivot_run : completed) {
    rows.push_back(pivot_run.row);
    columns.push_back(pivot_run.column);
  }
  rows = each_once(std::move(rows));
  columns = each_once(std::move(columns));
  std::vector<const PivotRun*> shown;  // one of each cell
  std::vector<std::string> disturbed;  // names of cells
  Sample of_disturbed;
  for (const nlohmann::json& row : rows) {
    pivot.row_values.push_back(label_of(row));
    pivot.cells.emplace_back();
    for (const nlohmann::json& column : columns) {
      std::vector<const PivotRun*> own;
      std::vector<const ConfiguredRun*> candidates;
      for (const PivotRun& pivot_run : completed) {
        if (pivot_run.row != row || pivot_run.column != column) continue;
        own.push_back(&pivot_run);
        candidates.push_back(pivot_run.run);
      }
      const Sample sample = sample_of(candidates, pivot.excluded, options.metric);
      for (const PivotRun* pivot_run : own) {
        if (pivot_run->run->summary.id == sample.run->id) shown.push_back(pivot_run);
      }
      const size_t ended = exclude_ended_early(ended_early, own, sample, pivot.excluded);
      const std::string changed = changed_inputs_text(sample);
      if (!changed.empty()) pivot.changed_inputs.push_back(changed);
      PivotCell cell = cell_of(sample, options.metric);
      cell.left_out = own.size() - cell.runs.size() + ended;
      for (const PivotRun& pivot_run : hidden) {
        if (own.empty() || pivot_run.row != row || pivot_run.column != column) continue;
        const store::RunSummary& run = pivot_run.run->summary;
        exclude(run,
                run.archived != 0 ? "archived" : "does not meet " + filter_text(options),
                pivot.excluded);
        ++cell.left_out;
      }
      if (results::metric_named(options.metric).is_timing && was_loaded(sample)) {
        cell.disturbance = load_text(sample);
        disturbed.push_back(label_of(row) +
                            (options.columns.empty() ? "" : " " + label_of(column)));
        of_disturbed.runs.insert(of_disturbed.runs.end(), sample.runs.begin(), sample.runs.end());
      }
      pivot.cells.back().push_back(std::move(cell));
    }
  }
  for (const nlohmann::json& column : columns)
    pivot.column_values.push_back(options.columns.empty() ? "" : label_of(column));
  if (!disturbed.empty()) pivot.unreliable_timing = unreliable_timing_text(disturbed, of_disturbed);
  pivot.differ_between_cells = without_keys(differing(shown), options);
  return pivot;
}

Sheet make_sheet(const Pivot& pivot) {
  const PivotOptions& options = pivot.options;
  Sheet sheet;
  sheet.title = options.metric + " by " + options.rows +
                (options.columns.empty() ? "" : " and " + options.columns);
  if (!options.filter.empty()) sheet.setup = "only runs with " + filter_text(options);
  sheet.columns.push_back({options.rows, false, false});
  for (const std::string& value : pivot.column_values)
    sheet.columns.push_back({value.empty() ? options.metric : value, true, false});
  for (size_t i = 0; i < pivot.row_values.size(); ++i) {
    sheet.rows.push_back({{pivot.row_values[i], std::nullopt}});
    for (const PivotCell& cell : pivot.cells[i])
      sheet.rows.back().push_back(shown_cell(cell, options.metric));
  }
  if (!pivot.unreliable_timing.empty()) sheet.footnotes.push_back(pivot.unreliable_timing);
  sheet.notes = notes_on(pivot);
  sheet.excluded = excluded_lines(pivot.excluded);
  return sheet;
}

std::vector<std::string> remarks(const Pivot& pivot) {
  std::vector<std::string> lines = notes_on(pivot);
  if (!pivot.unreliable_timing.empty()) lines.push_back(pivot.unreliable_timing);
  for (const std::string& line : excluded_lines(pivot.excluded))
    lines.push_back("Left out: " + line);
  return lines;
}

Json to_json(const Pivot& pivot) {
  Json json;
  json["rows"] = pivot.options.rows;
  json["columns"] = pivot.options.columns;
  json["metric"] = pivot.options.metric;
  json["filter"] = filter_text(pivot.options);
  json["cells"] = Json::array();
  for (size_t i = 0; i < pivot.row_values.size(); ++i) {
    for (size_t k = 0; k < pivot.column_values.size(); ++k) {
      const PivotCell& cell = pivot.cells[i][k];
      if (cell.summary.n == 0) continue;
      Json entry = {{"row", pivot.row_values[i]},
                    {"column", pivot.column_values[k]},
                    {"n", cell.summary.n},
                    {"mean", mean_json(cell.summary.mean)},
                    {"low", nullptr},
                    {"high", nullptr},
                    {"runs", cell.runs},
                    {"left_out", cell.left_out}};
      if (cell.summary.interval) {
        entry["low"] = cell.summary.interval->low;
        entry["high"] = cell.summary.interval->high;
        entry["interval"] = statistics::name_of(cell.summary.method);
      }
      if (!cell.disturbance.empty()) entry["disturbance"] = cell.disturbance;
      if (cell.cases) entry["count"] = *cell.cases;
      json["cells"].push_back(std::move(entry));
    }
  }
  json["left_out"] = to_json(pivot.excluded);
  json["varying"] = pivot.differ_between_cells;
  json["without"] = pivot.without;
  json["changed_inputs"] = pivot.changed_inputs;
  return json;
}

std::string to_csv(const Pivot& pivot) {
  const PivotOptions& options = pivot.options;
  const bool has_columns = !options.columns.empty();
  std::vector<std::string> header = {csv_field(options.rows)};
  if (has_columns) header.push_back(csv_field(options.columns));
  header.push_back(csv_field(options.metric));
  if (has_cases(pivot)) header.push_back(csv_field(options.metric + "_count"));
  header.insert(header.end(),
                {csv_field(options.metric + "_low"),
                 csv_field(options.metric + "_high"),
                 "runs",
                 "left_out",
                 "filter"});
  std::string text = csv_line(header);
  for (size_t i = 0; i < pivot.row_values.size(); ++i) {
    for (size_t k = 0; k < pivot.column_values.size(); ++k) {
      const PivotCell& cell = pivot.cells[i][k];
      if (cell.runs.empty()) continue;
      std::vector<std::string> fields = {csv_field(pivot.row_values[i])};
      if (has_columns) fields.push_back(csv_field(pivot.column_values[k]));
      const auto& interval = cell.summary.interval;
      fields.push_back(number_field(cell.summary.mean));
      if (has_cases(pivot)) fields.push_back(cell.cases ? std::to_string(*cell.cases) : "");
      fields.insert(fields.end(),
                    {interval ? number_field(interval->low) : "",
                     interval ? number_field(interval->high) : "",
                     std::to_string(cell.runs.size()),
                     std::to_string(cell.left_out),
                     csv_field(filter_text(options))});
      text += csv_line(fields);
    }
  }
  return text;
}

}  // namespace forge::tables
