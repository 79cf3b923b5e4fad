#include "core/results/page/page.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/leaves.h"
#include "core/results/tables/row_sample.h"
#include "core/run/identity.h"

namespace forge::page {
namespace {

/// Null, of a run whose config is not known, has no leaves.
FlatConfig leaves_of(const nlohmann::json& config) {
  FlatConfig leaves;
  if (!config.is_object()) return leaves;
  for (const config::Leaf& leaf : config::leaves_of_run(config, nullptr)) {
    if (leaf.path == "seed" || leaf.path == "name" || leaf.path == "description") continue;
    leaves[leaf.path] = config::shown_value(leaf.value);
  }
  return leaves;
}

/// For every key the value that most have; of equally frequent ones the first in the alphabet.
FlatConfig most_frequent(const std::vector<FlatConfig>& configs) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const FlatConfig& leaves : configs) {
    for (const auto& [key, value] : leaves) ++counts[key][value];
  }
  FlatConfig common;
  for (const auto& [key, values] : counts) {
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    common[key] = std::max_element(values.begin(), values.end(), by_count)->first;
  }
  return common;
}

/// Keys that are in no run's identity.
std::vector<std::string> harmless_keys(const std::vector<nlohmann::json>& of_runs,
                                       const FlatConfig& common) {
  FlatConfig identifying;
  for (const nlohmann::json& config : of_runs) {
    if (config.is_object()) identifying.merge(leaves_of(run::identity_config(config)));
  }
  std::vector<std::string> harmless;
  for (const auto& [key, value] : common) {
    if (identifying.count(key) == 0) harmless.push_back(key);
  }
  return harmless;
}

}  // namespace

Configs compare_configs(const std::vector<nlohmann::json>& of_runs) {
  Configs configs;
  std::vector<FlatConfig> distinct;
  std::map<FlatConfig, size_t> known;
  for (const nlohmann::json& config : of_runs) {
    FlatConfig leaves = leaves_of(config);
    const auto [entry, is_new] = known.try_emplace(leaves, distinct.size());
    if (is_new) distinct.push_back(std::move(leaves));
    configs.of_run.push_back(entry->second);
  }
  configs.common = most_frequent(distinct);
  configs.harmless = harmless_keys(of_runs, configs.common);
  for (const FlatConfig& leaves : distinct) {
    FlatConfig& changes = configs.changes.emplace_back();
    std::vector<std::string>& lacks = configs.lacks.emplace_back();
    for (const auto& [key, value] : configs.common) {
      const auto own = leaves.find(key);
      if (own == leaves.end()) {
        lacks.push_back(key);
      } else if (own->second != value) {
        changes[key] = own->second;
      }
    }
  }
  return configs;
}

nlohmann::ordered_json to_json(const Configs& configs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < configs.changes.size(); ++i) {
    nlohmann::ordered_json changes = nlohmann::ordered_json::object();
    for (const auto& [key, value] : configs.changes[i]) changes[key] = value;
    for (const std::string& key : configs.lacks[i]) changes[key] = nullptr;
    list.push_back(std::move(changes));
  }
  nlohmann::ordered_json common = nlohmann::ordered_json::object();
  for (const auto& [key, value] : configs.common) common[key] = value;
  return {
      {"common", std::move(common)}, {"changes", std::move(list)}, {"harmless", configs.harmless}};
}

namespace {

using Json = nlohmann::ordered_json;

/// Where a run lies in the list.
using Places = std::map<std::string, size_t>;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// A text alone where that is all there is.
Json cell_json(const tables::SheetCell& cell) {
  if (!cell.value && !cell.bold) return cell.text;
  Json json = {{"text", cell.text}, {"value", or_null(cell.value)}};
  if (cell.bold) json["bold"] = true;
  return json;
}

void add_info(const ColumnInfo& info, Json& column) {
  column["better"] = !info.better                                           ? ""
                     : *info.better == results::Direction::higher_is_better ? "higher"
                                                                            : "lower";
  column["cost"] = info.is_cost;
  column["unit"] = info.unit == results::Unit::fraction ? "share"
                   : info.unit == results::Unit::bytes  ? "bytes"
                                                        : "";
  Json intervals = Json::array();
  for (const auto& interval : info.intervals)
    intervals.push_back(interval ? Json({interval->low, interval->high}) : Json());
  column["intervals"] = std::move(intervals);
  column["doubts"] = info.doubts;
}

Json columns_json(const Table& table) {
  Json columns = Json::array();
  for (size_t i = 0; i < table.sheet.columns.size(); ++i) {
    const tables::SheetColumn& column = table.sheet.columns[i];
    Json json = {{"title", column.title}, {"number", column.is_number}, {"prose", column.wraps}};
    if (i < table.columns.size()) add_info(table.columns[i], json);
    columns.push_back(std::move(json));
  }
  return columns;
}

Json rows_json(const tables::Sheet& sheet) {
  Json rows = Json::array();
  for (const std::vector<tables::SheetCell>& row : sheet.rows) {
    Json& cells = rows.emplace_back(Json::array());
    for (const tables::SheetCell& cell : row) cells.push_back(cell_json(cell));
  }
  return rows;
}

/// Runs by their places in the list; one that the page does not have is left out.
Json origins_json(const Table& table, const Places& places) {
  Json rows = Json::array();
  for (const RowSource& origin : table.row_sources) {
    Json runs = Json::array();
    for (const std::string& id : origin.runs) {
      const auto found = places.find(id);
      if (found != places.end()) runs.push_back(found->second);
    }
    rows.push_back(
        {{"name", origin.name}, {"runs", std::move(runs)}, {"breaks", origin.violations}});
  }
  return rows;
}

Json table_json(const Table& table, const Places& places) {
  const tables::Sheet& sheet = table.sheet;
  Json setup = Json::array();
  for (const tables::SetupEntry& entry : table.setup) setup.push_back({entry.name, entry.value});
  return {{"name", table.name},
          {"title", sheet.title},
          {"columns", columns_json(table)},
          {"rows", rows_json(sheet)},
          {"origins", origins_json(table, places)},
          {"footnotes", sheet.footnotes},
          {"claims", sheet.verdicts},
          {"commands", sheet.commands},
          {"left_out", sheet.excluded},
          {"notes", sheet.notes},
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
               {"eval_loss", or_null(summary.metric(results::eval_loss_name))},
               {"train_loss", or_null(summary.metric(results::train_loss_name))},
               {"tokens_per_second", or_null(summary.metric(results::tokens_per_second_name))},
               {"wall_seconds", or_null(summary.metric(results::wall_seconds_name))},
               {"peak_memory_bytes", or_null(summary.metric(results::peak_memory_name))},
               {"key", summary.key},
               {"revision", summary.revision},
               {"command", pasteable(summary.command)},
               {"failure", summary.failure_reason},
               {"warning", tables::changed_inputs_text(summary)},
               {"note", summary.note},
               {"tags", summary.tags},
               {"settings", config},
               {"recorded", run.total_points}};
  json["train"] = encoded(run.training);
  json["eval"] = encoded(run.evaluations);
  return json;
}

/// The runs' configs, with what decides their numbers beside the config where runs differ in it: so
/// that curves of another text or program are no seeds of one mean.
std::vector<nlohmann::json> configs_of(const std::vector<Run>& runs) {
  using Part = std::pair<const char*, std::function<nlohmann::json(const store::RunSummary&)>>;
  const std::vector<Part> parts = {
      {"/data/fingerprint", [](const auto& run) { return run.data_fingerprint; }},
      {"/tokenizer/fingerprint", [](const auto& run) { return run.tokenizer_fingerprint; }},
      {"/train/initial_weights_hash", [](const auto& run) { return run.initial_weights_hash; }},
      {"/external/program", [](const auto& run) { return run.program; }},
      {"/device/type", [](const auto& run) { return run.device_type; }},
      {"/device/threads", [](const auto& run) { return run.threads; }},
      {"/numerics_version", [](const auto& run) { return run.numerics_version; }}};
  std::vector<nlohmann::json> configs;
  for (const Run& run : runs) configs.push_back(run.config);
  for (const auto& [place, value_of] : parts) {
    std::set<nlohmann::json> values;
    for (const Run& run : runs) values.insert(value_of(run.summary));
    for (size_t i = 0; values.size() > 1 && i < runs.size(); ++i)
      if (configs[i].is_object())
        configs[i][nlohmann::json::json_pointer(place)] = value_of(runs[i].summary);
  }
  return configs;
}

}  // namespace

Json to_json(const Page& page) {
  Places places;
  for (const Run& run : page.runs) places.emplace(run.summary.id, places.size());
  const Configs configs = compare_configs(configs_of(page.runs));
  Json tables = Json::array(), runs = Json::array();
  for (const Table& table : page.tables) tables.push_back(table_json(table, places));
  for (size_t i = 0; i < page.runs.size(); ++i)
    runs.push_back(run_json(page.runs[i], configs.of_run[i]));
  return {{"title", page.title},
          {"project", page.project},
          {"tables", std::move(tables)},
          {"runs", std::move(runs)},
          {"configs", to_json(configs)},
          {"varied", page.varied},
          {"commands", page.commands}};
}

namespace {

/// Text between tags.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default: result += c;
    }
  }
  return result;
}

/// UTF-8 without the characters that turn the direction of what follows: U+202A to U+202E and
/// U+2066 to U+2069. Names could read as others with them.
std::string without_turns(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string character = text[i] == '\xe2' ? text.substr(i, 3) : "";
    const bool turns = (character >= "\xe2\x80\xaa" && character <= "\xe2\x80\xae") ||
                       (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9");
    if (turns) {
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// JSON that ends no script element, whatever its texts are.
std::string for_script(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<': result += "\\u003c"; break;
      case '>': result += "\\u003e"; break;
      default: result += c;
    }
  }
  return result;
}

/// The text that stands for {{name}} in the template.
std::string part(const std::string& name, const Page& page, const Assets& assets) {
  if (name == "title") return without_turns(escaped(page.title));
  if (name == "style") return std::string(assets.plot_style) + "\n" + std::string(assets.style);
  if (name == "licence") return std::string(assets.plot_licence);
  if (name == "plot_script") return std::string(assets.plot_script);
  if (name == "script") return std::string(assets.script);
  if (name == "data") return without_turns(for_script(json_text(to_json(page))));
  throw Error("template.html has an unknown part '" + name + "'");
}

}  // namespace

std::string to_html(const Page& page, const Assets& assets) {
  if (assets.plot_script.empty()) {
    throw Error("this forge was built without uPlot, which draws the curves of a report",
                "scripts/setup fetches it from the npm registry; then build forge again");
  }
  const std::string_view text = assets.page;
  std::string html;
  size_t end = 0;
  for (size_t mark = text.find("{{"); mark != text.npos; mark = text.find("{{", end)) {
    html += text.substr(end, mark - end);
    end = text.find("}}", mark) + 2;
    html += part(std::string(text.substr(mark + 2, end - mark - 4)), page, assets);
  }
  html += text.substr(end);
  return html;
}

}  // namespace forge::page
