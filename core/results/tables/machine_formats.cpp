#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/base/display_text.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/sheet.h"
#include "core/results/tables/verdicts.h"

namespace forge::tables {

namespace {

bool is_plain_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

/// What may stand before a formula and does not keep a spreadsheet from running it; the quotes are
/// those of a field that begins in the middle of this one.
constexpr const char* passed_blanks[] = {" ", "\r", "\n", "\"", "\u00A0", "\u3000", "\uFEFF"};
/// What begins one, the full-width characters, too.
constexpr const char* formula_beginnings[] = {
    "=", "+", "-", "@", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};

/// Where a spreadsheet would take the cell for a formula; npos where for a text or number.
size_t find_formula(const std::string& cell) {
  size_t place = 0;
  const auto begins_with = [&](const char* text) {
    return cell.compare(place, std::strlen(text), text) == 0;
  };
  while (true) {
    const auto* const passed =
        std::find_if(std::begin(passed_blanks), std::end(passed_blanks), begins_with);
    if (passed == std::end(passed_blanks)) break;
    place += std::strlen(*passed);
  }
  const bool begins =
      std::any_of(std::begin(formula_beginnings), std::end(formula_beginnings), begins_with);
  return begins && !is_plain_number(cell.substr(place)) ? place : std::string::npos;
}

/// The text with an apostrophe before each formula, also where a spreadsheet would part it: many
/// take a semicolon or a tab for the end of a cell.
std::string without_formulas(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(";\t", begin), text.size());
    std::string cell = text.substr(begin, end - begin);
    if (find_formula(cell) != std::string::npos) cell.insert(find_formula(cell), "'");
    result += cell + text.substr(end, 1);
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string csv_field(const std::string& field) {
  const std::string text = without_formulas(std::string(trim(printable_lines(field))));
  if (text.find_first_of(",;\t\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) { return join(fields, ",") + "\r\n"; }

namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json value_or_null(const std::optional<T>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(*value)) return shortest(*value);  // as in the worker's protocol
  }
  return *value;
}

Json whole_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(std::llround(*value)) : value_or_null(value);
}

/// The metrics of a row that both formats give, in their order: means over its seeds.
Json metrics_json(const AblationRow& row, const TableSpec& table) {
  const auto mean = [&](const char* metric) { return mean_of(row.runs, metric); };
  Json metrics;
  metrics["eval_loss"] = value_or_null(mean(results::eval_loss_name));
  metrics["train_loss"] = value_or_null(mean(results::train_loss_name));
  metrics["tokens_per_second"] = value_or_null(tokens_per_second_of(row, table));
  metrics["peak_memory_bytes"] = whole_or_null(mean(results::peak_memory_name));
  metrics["peak_resident_bytes"] = whole_or_null(mean(results::peak_resident_name));
  metrics["wall_seconds"] = value_or_null(mean(results::wall_seconds_name));
  metrics["parameters"] = row.completed() ? Json(row.run->parameters) : Json(nullptr);
  metrics["throughput_change"] = value_or_null(row.throughput_change);
  metrics["memory_change"] = value_or_null(row.memory_change);
  metrics["micro_batch_size"] = row.run ? value_or_null(row.run->micro_batch_size) : Json(nullptr);
  metrics["disturbance"] = load_text(row);
  metrics["changed_inputs"] = changed_inputs_text(row);
  for (const ColumnSpec& column : table.columns) {
    const auto metric = metric_of(column);
    if (!metric || metric->source == results::Source::task || metrics.contains(metric->name))
      continue;
    const std::vector<double> values = values_of(row, metric->name);
    metrics[metric->name] =
        values.empty()
            ? Json()
            : value_or_null(std::optional<double>(statistics::summarize(values, 0).mean));
  }
  return metrics;
}

/// What a derived column is called: by its expression, whose blanks count as one each. Titles and
/// places may change without another number below.
std::string derived_key(const ColumnSpec& column) {
  std::string key;
  for (const char c : column.value) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_blank) {
      key += c;
    } else if (!key.empty() && key.back() != ' ') {
      key += ' ';
    }
  }
  return std::string(trim(key));
}

/// The table's derived columns for a row, by their keys.
Json derived_json(const AblationRow& row, const Ablation& ablation) {
  Json derived = Json::object();
  for (const ColumnSpec& column : ablation.table.columns) {
    if (column.kind != ColumnKind::derived) continue;
    Estimate found;
    if (row.completed()) found = derived_value(column, row, ablation);
    Json& json = derived[derived_key(column)];
    json["title"] = column.title;
    json["unit"] = column.unit;
    json["value"] = value_or_null(found.value);
    const bool has_interval = found.value && found.interval;
    json["low"] = has_interval ? Json(found.interval->low) : Json();
    json["high"] = has_interval ? Json(found.interval->high) : Json();
  }
  return derived;
}

/// What is said of a metric over seeds.
Json statistics_json(const Cell& cell) {
  Json json;
  json["n"] = cell.summary.n;
  json["mean"] = value_or_null(std::optional<double>(cell.summary.mean));
  json["standard_deviation"] = value_or_null(cell.summary.standard_deviation);
  json["low"] = nullptr;
  json["high"] = nullptr;
  if (cell.summary.interval) {
    json["low"] = cell.summary.interval->low;
    json["high"] = cell.summary.interval->high;
    json["interval"] = statistics::name_of(cell.summary.method);
  }
  json["values"] = Json::array();
  for (const double value : cell.values)
    json["values"].push_back(value_or_null(std::optional<double>(value)));
  if (cell.difference) {
    const statistics::Difference& difference = *cell.difference;
    json["difference"] = {
        {"mean", difference.difference},
        {"low", difference.interval.low},
        {"high", difference.interval.high},
        {"test", cell.paired ? "paired" : "Welch"},
        {"common_seeds", cell.common_seeds > 0 ? Json(cell.common_seeds) : Json()},
        {"degrees_of_freedom", difference.degrees_of_freedom},
        {"p", difference.p},
        {"p_adjusted", value_or_null(cell.p)},
        {"effect_size", value_or_null(difference.effect_size)}};
  }
  json["standing"] = name_of(cell.standing);
  json["why_not_tested"] = cell.why_not_tested;
  json["best"] = cell.best;
  if (cell.noise) json["noise"] = *cell.noise;
  return json;
}

/// The cells that both formats give with what the seeds say of them: of all that seeds vary.
CellsByMetric sampled_cells(const Verdicts& verdicts, const TableSpec& table) {
  CellsByMetric cells;
  for (const auto& [name, of_metric] : verdicts.cells)
    if (!results::metric_named(name).is_exact() &&
        !shows_benchmark({ColumnKind::metric, "", name}, table))
      cells[name] = of_metric;
  return cells;
}

Json scores_json(const AblationRow& row) {
  Json scores = Json::object();
  if (!row.completed()) return scores;
  for (const auto& [name, score] : row.run->scores) {
    scores[name]["value"] = value_or_null(mean_of(row.runs, name));
    scores[name]["count"] = score.count;
  }
  return scores;
}

std::string status_of(const AblationRow& row) {
  return row.run ? run::name_of(row.run->status) : state_text(row);
}

/// Of the runs with one value of best_of's key.
std::string status_of(const SweepPoint& point) {
  if (point.has_diverged()) return "diverged";
  if (point.run) return run::name_of(point.run->status);
  return point.is_archived ? "archived" : point.is_left_out ? "left out" : "missing";
}

/// The value of best_of that the row shows, and all that it was chosen from.
Json best_of_json(const AblationRow& row, const Ablation& ablation) {
  Json points = Json::array();
  for (const SweepPoint& point : row.points) {
    Json json;
    json["value"] = point.value;
    json["status"] = status_of(point);
    json["run_id"] = point.run ? Json(point.run->id) : Json(nullptr);
    json["figure"] = point.has_diverged()
                         ? Json(nullptr)
                         : value_or_null(mean_of(point.runs, ablation.table.best_of->by));
    if (point.completed()) json["seeds"] = point.runs.size();
    if (point.has_diverged()) json["diverged_seeds"] = point.diverged.size();
    if (!point.run && !point.is_hidden() && !point.has_diverged())
      json["command"] = command_for(row, ablation, point.value);
    points.push_back(std::move(json));
  }
  return {{"value", value_or_null(row.varied)}, {"points", std::move(points)}};
}

/// The measurement that tokens_per_second is of; null for none.
Json benchmark_json(const AblationRow& row) {
  if (!row.speed) return nullptr;
  const benchmark::Record& record = row.speed->record;
  return {{"id", record.id},
          {"call", record.call.id},
          {"created", record.call.created},
          {"device_name", record.device.name},
          {"spread", record.spread},
          {"otherwise", row.speed->not_comparable_because}};
}

Json published_of(const PublishedResult& published) {
  Json metrics;
  metrics["eval_loss"] = value_or_null(published.eval_loss);
  metrics["tokens_per_second"] = value_or_null(published.tokens_per_second);
  metrics["peak_memory_gib"] = value_or_null(published.peak_memory_gib);
  return metrics;
}

Json runs_json(const AblationRow& row) {
  Json runs = Json::array();
  for (const store::RunSummary& run : row.runs) {
    runs.push_back(
        {{"run_id", run.id},
         {"seed", run.seed},
         {"eval_loss", value_or_null(run.metric(results::eval_loss_name))},
         {"tokens_per_second", value_or_null(run.metric(results::tokens_per_second_name))}});
  }
  return runs;
}

/// Of the conditions it is only of interest which sets share them.
Json set_to_json(const RunSet& set) {
  const std::string conditions = set.conditions.empty() ? "" : hash_hex(set.conditions);
  Json json = {{"second_run", set.second_run}, {"conditions", conditions}};
  if (!set.second_begun.empty() && set.second_begun != set.second_run)
    json["second_begun"] = set.second_begun;
  return json;
}

/// What else was tried of the row's config, so that its adjusted p can be found again.
Json sets_json(const RunSets& sets) {
  Json json = set_to_json(sets.shown);
  json["others"] = Json::array();
  for (const RunSet& other : sets.others) json["others"].push_back(set_to_json(other));
  json["tables"] = sets.tables;
  json["swept"] = sets.swept;
  return json;
}

Json row_to_json(size_t index, const CellsByMetric& samples, const Ablation& ablation) {
  const AblationRow& row = ablation.rows[index];
  Json json;
  json["config"] = row.spec.config;
  json["name"] = row.spec.name;
  json["positions"] = row.spec.positions;
  json["notes"] = row.spec.notes;
  if (!ablation.table.by.empty()) json[ablation.table.by] = row.group;
  json["status"] = status_of(row);
  json["run_id"] = row.run ? Json(row.run->id) : Json(nullptr);
  json.update(metrics_json(row, ablation.table));
  json["scores"] = scores_json(row);
  json["derived"] = derived_json(row, ablation);
  json["runs"] = runs_json(row);
  json["statistics"] = Json::object();
  for (const auto& [metric, cells] : samples) {
    if (cells[index].summary.n > 0) json["statistics"][metric] = statistics_json(cells[index]);
  }
  json["planned_seeds"] = row.planned_seeds < 2 ? Json(nullptr) : Json(row.planned_seeds);
  if (!row.sets.others.empty() || !row.sets.tables.empty()) json["sets"] = sets_json(row.sets);
  json["breaks"] = row.violations;
  json["differs_from_config"] = row.differs_from_config;
  if (ablation.table.tokens_per_second == SpeedSource::benchmark) {
    json["benchmark"] = benchmark_json(row);
  }
  if (ablation.table.best_of) json["best_of"] = best_of_json(row, ablation);
  if (row.run && !row.completed()) {
    json["progress_percent"] = store::progress_percent(*row.run);
    json["failure_reason"] = row.run->failure_reason;
  }
  if (!row.run && row.filtered_out == 0 && !ablation.table.best_of)
    json["command"] =
        row.archived.empty() ? command_for(row, ablation) : restore_command(row.archived);
  if (ablation.published)
    json["published"] = row.published ? published_of(*row.published) : Json(nullptr);
  return json;
}

/// A part of the line above the table, by itself.
std::string setup_text(const Ablation& ablation, const std::string& name) {
  for (const SetupEntry& entry : ablation.setup)
    if (entry.name == name) return entry.short_text;
  return "";
}

/// "failed (3 runs)": why the row does not count runs of its config.
std::vector<std::string> left_out_of(const AblationRow& row, const Ablation& ablation) {
  std::vector<std::string> reasons;
  for (const ExcludedRuns& entry : ablation.excluded)
    if (entry.config == row.spec.config)
      reasons.push_back(entry.reason + " (" + counted(entry.runs.size(), "run") + ")");
  return reasons;
}

/// A row's fields by the names of their columns.
std::vector<std::pair<std::string, Json>> csv_row(size_t index,
                                                  const CellsByMetric& samples,
                                                  const Ablation& ablation) {
  const AblationRow& row = ablation.rows[index];
  std::vector<std::pair<std::string, Json>> fields = {{"config", row.spec.config},
                                                      {"name", row.spec.name},
                                                      {"positions", row.spec.positions},
                                                      {"notes", row.spec.notes},
                                                      {"status", status_of(row)},
                                                      {"run_id", row.run ? row.run->id : ""}};
  const auto add = [&](const std::string& name, Json value) {
    fields.emplace_back(name, std::move(value));
  };
  const Json metrics = metrics_json(row, ablation.table);
  for (const auto& [name, value] : metrics.items()) add(name, value);
  const Json scores = scores_json(row);
  for (const std::string& name : scores_of(ablation.table)) {
    const Json score = scores.value(name, Json::object());
    add(name, score.value("value", Json()));
    add(name + "_count", score.value("count", Json()));
  }
  const Json derived_columns = derived_json(row, ablation);
  for (const auto& [key, derived] : derived_columns.items()) {
    add("derived[" + key + "]", derived.at("value"));
    add("derived_low[" + key + "]", derived.at("low"));
    add("derived_high[" + key + "]", derived.at("high"));
  }
  add("seeds", row.runs.size());
  for (const auto& [metric, cells] : samples) {
    const Cell& cell = cells[index];
    const auto& interval = cell.summary.interval;
    add(metric + "_sd", value_or_null(cell.summary.standard_deviation));
    add(metric + "_low", interval ? Json(interval->low) : Json());
    add(metric + "_high", interval ? Json(interval->high) : Json());
    const auto& difference = cell.difference;
    add(metric + "_difference", difference ? Json(difference->difference) : Json());
    add(metric + "_difference_low", difference ? Json(difference->interval.low) : Json());
    add(metric + "_difference_high", difference ? Json(difference->interval.high) : Json());
    add(metric + "_p", value_or_null(cell.p));
    add(metric + "_standing", cell.summary.n == 0 ? "" : name_of(cell.standing));
  }
  add("plan", setup_text(ablation, "Plan"));
  add("table", setup_text(ablation, "Table"));
  add("repetitions", setup_text(ablation, "Repetitions"));
  add("other_runs", setup_text(ablation, "Other runs"));
  add("filter", setup_text(ablation, "Filter"));
  add("setup", line_above(ablation));
  add("left_out", join(left_out_of(row, ablation), "; "));
  add("breaks", join(row.violations, "; "));
  add("differs_from_config", join(row.differs_from_config, "; "));
  if (ablation.table.best_of) add(ablation.table.best_of->key, value_or_null(row.varied));
  if (!ablation.table.by.empty()) add(ablation.table.by, row.group);
  if (ablation.published) {
    const Json theirs = published_of(row.published.value_or(PublishedResult()));
    for (const auto& [name, value] : theirs.items()) add("published_" + name, value);
  }
  return fields;
}

}  // namespace

Json to_json(const std::vector<ExcludedRuns>& excluded) {
  Json list = Json::array();
  for (const ExcludedRuns& entry : excluded)
    list.push_back({{"config", entry.config},
                    {"reason", entry.reason},
                    {"runs", entry.runs.size()},
                    {"ids", entry.runs}});
  return list;
}

Json to_json(const Ablation& ablation) {
  Json json;
  json["table"] = ablation.table.name;
  json["title"] = ablation.table.title;
  json["baseline"] = ablation.table.baseline;
  json["profile"] = ablation.profile;
  json["setup"] = Json::object();
  for (const SetupEntry& entry : ablation.setup) json["setup"][entry.name] = entry.value;
  if (ablation.table.best_of) {
    const BestOfSpec& best_of = *ablation.table.best_of;
    json["best_of"] = {{"key", best_of.key},
                       {"by", best_of.by},
                       {"take", names_of(best_of.take)[static_cast<size_t>(best_of.take)]}};
  }
  if (!ablation.table.by.empty()) json["by"] = ablation.table.by;
  json["rows"] = Json::array();
  const Verdicts verdicts = verdicts_of(ablation);
  const CellsByMetric samples = sampled_cells(verdicts, ablation.table);
  for (size_t i = 0; i < ablation.rows.size(); ++i)
    json["rows"].push_back(row_to_json(i, samples, ablation));
  json["left_out"] = to_json(ablation.excluded);
  if (!ablation.table.claims.empty()) {
    json["claims"] = Json::array();
    for (const JudgedClaim& judged : verdicts.claims)
      json["claims"].push_back({{"claim", judged.claim},
                                {"verdict", name_of(judged.verdict)},
                                {"p_adjusted", value_or_null(judged.p)},
                                {"asked_afterwards", judged.asked_afterwards},
                                {"changed_inputs", judged.changed_inputs},
                                {"reason", judged.reason}});
  }
  if (ablation.published) {
    const Published& published = *ablation.published;
    json["published"] = {
        {"source", published.source}, {"url", published.url}, {"setup", published.setup}};
  }
  return json;
}

std::string to_csv(const Ablation& ablation) {
  const CellsByMetric samples = sampled_cells(verdicts_of(ablation), ablation.table);
  std::string text;
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    std::vector<std::string> header, line;
    for (const auto& [name, value] : csv_row(i, samples, ablation)) {
      header.push_back(csv_field(name));
      line.push_back(value.is_null() ? "" : csv_field(plain_text(value)));
    }
    if (i == 0) text += csv_line(header);
    text += csv_line(line);
  }
  return text;
}

}  // namespace forge::tables
