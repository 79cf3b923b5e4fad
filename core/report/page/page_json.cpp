#include <map>

#include "core/report/page/configs.h"
#include "core/report/page/page.h"

namespace forge::report::page {
namespace {

using Json = nlohmann::ordered_json;

/// Where a run lies in the list.
using Places = std::map<std::string, size_t>;

const char* name_of(Better better) {
  switch (better) {
    case Better::lower: return "lower";
    case Better::higher: return "higher";
    default: return "";
  }
}

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::share: return "share";
    case Unit::bytes: return "bytes";
    default: return "";
  }
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// A text alone where that is all there is.
Json cell_json(const SheetCell& cell) {
  if (!cell.value && !cell.bold) return cell.text;
  Json json = {{"text", cell.text}, {"value", or_null(cell.value)}};
  if (cell.bold) json["bold"] = true;
  return json;
}

void add_meaning(const Meaning& meaning, Json& column) {
  column["better"] = name_of(meaning.better);
  column["cost"] = meaning.is_cost;
  column["unit"] = name_of(meaning.unit);
  Json intervals = Json::array();
  for (const auto& interval : meaning.intervals) {
    if (interval) {
      intervals.push_back({interval->low, interval->high});
    } else {
      intervals.push_back(nullptr);
    }
  }
  column["intervals"] = std::move(intervals);
}

Json columns_json(const Table& table) {
  Json columns = Json::array();
  for (size_t i = 0; i < table.sheet.columns.size(); ++i) {
    const SheetColumn& column = table.sheet.columns[i];
    Json json = {{"title", column.title}, {"number", column.is_number}, {"prose", column.wraps}};
    if (i < table.meanings.size()) add_meaning(table.meanings[i], json);
    columns.push_back(std::move(json));
  }
  return columns;
}

Json rows_json(const Sheet& sheet) {
  Json rows = Json::array();
  for (const std::vector<SheetCell>& row : sheet.rows) {
    Json& cells = rows.emplace_back(Json::array());
    for (const SheetCell& cell : row) cells.push_back(cell_json(cell));
  }
  return rows;
}

/// Runs by their places in the list; one that the page does not have is left out.
Json origins_json(const Table& table, const Places& places) {
  Json rows = Json::array();
  for (const Origin& origin : table.origins) {
    Json runs = Json::array();
    for (const std::string& id : origin.runs) {
      const auto found = places.find(id);
      if (found != places.end()) runs.push_back(found->second);
    }
    rows.push_back({{"name", origin.name}, {"runs", std::move(runs)}, {"breaks", origin.breaks}});
  }
  return rows;
}

Json table_json(const Table& table, const Places& places) {
  const Sheet& sheet = table.sheet;
  Json setup = Json::array();
  for (const SetupEntry& entry : table.setup) setup.push_back({entry.name, entry.value});
  return {{"name", table.name},
          {"title", sheet.title},
          {"columns", columns_json(table)},
          {"rows", rows_json(sheet)},
          {"origins", origins_json(table, places)},
          {"footnotes", sheet.footnotes},
          {"claims", sheet.verdicts},
          {"commands", sheet.commands},
          {"left_out", sheet.left_out},
          {"sources", sheet.sources},
          {"setup", std::move(setup)}};
}

Json run_json(const Run& run, size_t config) {
  const store::RunSummary& summary = run.summary;
  Json json = {{"id", summary.id},
               {"config", summary.config},
               {"name", summary.name},
               {"profile", summary.profile},
               {"seed", summary.seed},
               {"backend", summary.backend},
               {"device", summary.device_name},
               {"threads", summary.threads},
               {"status", run::name_of(summary.status)},
               {"created", summary.created},
               {"step", summary.step},
               {"max_steps", summary.max_steps},
               {"tokens", summary.tokens},
               {"parameters", summary.parameters},
               {"eval_loss", or_null(summary.eval_loss)},
               {"train_loss", or_null(summary.train_loss)},
               {"tokens_per_second", or_null(summary.tokens_per_second)},
               {"wall_seconds", or_null(summary.wall_seconds)},
               {"peak_memory_bytes", or_null(summary.peak_memory_bytes)},
               {"key", summary.key},
               {"revision", summary.revision},
               {"command", summary.command},
               {"failure", summary.failure_reason},
               {"note", summary.note},
               {"tags", summary.tags},
               {"settings", config},
               {"recorded", run.recorded}};
  json["train"] = encoded(run.training);
  json["eval"] = encoded(run.evaluations);
  return json;
}

}  // namespace

Json to_json(const Page& page) {
  Places places;
  std::vector<nlohmann::json> configs_of_runs;
  for (const Run& run : page.runs) {
    places[run.summary.id] = configs_of_runs.size();
    configs_of_runs.push_back(run.config);
  }
  const Configs configs = compare_configs(configs_of_runs);
  Json tables = Json::array(), runs = Json::array();
  for (const Table& table : page.tables) tables.push_back(table_json(table, places));
  for (size_t i = 0; i < page.runs.size(); ++i)
    runs.push_back(run_json(page.runs[i], configs.of_run[i]));
  return {{"title", page.title},
          {"project", page.project},
          {"tables", std::move(tables)},
          {"runs", std::move(runs)},
          {"configs", to_json(configs)},
          {"commands", page.commands}};
}

}  // namespace forge::report::page
