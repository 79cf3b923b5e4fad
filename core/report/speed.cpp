#include "core/report/speed.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "core/base/json_text.h"
#include "core/base/text.h"

namespace forge::report {
namespace {

using benchmark::Record;

/// The records of one call, by config.
struct CallRecords {
  std::string created;
  std::map<std::string, const Record*> of_config;

  using Score = std::tuple<size_t, bool, std::string>;
  Score score(const TableSpec& table) const {
    return {of_config.size(), of_config.count(table.baseline) > 0, created};
  }
};

std::map<std::string, CallRecords> calls_of(const TableSpec& table,
                                            const std::vector<Record>& records) {
  std::set<std::string> configs;
  for (const RowSpec& row : table.rows) configs.insert(row.config);
  std::map<std::string, CallRecords> calls;
  for (const Record& record : records) {
    if (record.kind != benchmark::Kind::training || configs.count(record.config) == 0) continue;
    CallRecords& call = calls[record.call.id];
    call.created = record.call.created;
    call.of_config.emplace(record.config, &record);
  }
  return calls;
}

const Record* newest_of(const std::string& config,
                        const std::map<std::string, CallRecords>& calls) {
  const Record* newest = nullptr;
  for (const auto& [id, call] : calls) {
    const auto found = call.of_config.find(config);
    if (found == call.of_config.end()) continue;
    if (!newest || found->second->call.created > newest->call.created) newest = found->second;
  }
  return newest;
}

std::string device_text(const benchmark::Device& device) {
  const std::string name = device.name.empty() ? device.type : device.name;
  if (device.type != "cpu") return name;
  return name + ", " + std::to_string(device.threads) +
         (device.threads == 1 ? " thread" : " threads");
}

/// "batch_size" of "/batch_size", "z_loss.kind" of "/z_loss/kind".
std::string dotted(const std::string& pointer) {
  return join(split(std::string_view(pointer).substr(1), '/'), ".");
}

/// What keeps a measurement from being compared with another one; "" for nothing.
std::string difference(const Record& record, const Record& reference) {
  std::vector<std::string> parts;
  if (record.call.id != reference.call.id) {
    parts.push_back("measured in another call, on " + record.call.created.substr(0, 10));
  }
  if (device_text(record.device) != device_text(reference.device)) {
    parts.push_back("on " + device_text(record.device));
  }
  const nlohmann::json own = record.train.flatten();
  const nlohmann::json others = reference.train.flatten();
  for (const auto& [pointer, value] : own.items()) {
    const auto other = others.find(pointer);
    if (other != others.end() && *other != value) {
      parts.push_back("train." + dotted(pointer) + " " + json_text(value) + " where others have " +
                      other->dump());
    }
  }
  return join(parts, ", ");
}

std::string percent(double fraction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * fraction);
  return text;
}

}  // namespace

std::vector<std::optional<MeasuredSpeed>> choose_speeds(const TableSpec& table,
                                                        const std::vector<Record>& records) {
  const std::map<std::string, CallRecords> calls = calls_of(table, records);
  std::vector<std::optional<MeasuredSpeed>> speeds(table.rows.size());
  const auto best = std::max_element(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return a.second.score(table) < b.second.score(table);
  });
  if (best == calls.end()) return speeds;
  const auto& chosen = best->second.of_config;
  const auto of_baseline = chosen.find(table.baseline);
  const Record& reference =
      of_baseline != chosen.end() ? *of_baseline->second : *chosen.begin()->second;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& config = table.rows[i].config;
    const auto found = chosen.find(config);
    const Record* record = found != chosen.end() ? found->second : newest_of(config, calls);
    if (record) speeds[i] = {*record, difference(*record, reference)};
  }
  return speeds;
}

std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds) {
  const Record* any = nullptr;
  double spread = 0;
  for (const std::optional<MeasuredSpeed>& speed : speeds) {
    if (!speed || !speed->otherwise.empty()) continue;
    if (!any) any = &speed->record;
    spread = std::max(spread, speed->record.spread);
  }
  if (!any) return "";
  return "forge bench on " + any->call.created.substr(0, 10) + ", " + device_text(any->device) +
         ", " + json_text(any->train.value("batch_size", nlohmann::json(0))) + " \u00d7 " +
         json_text(any->train.value("seq_len", nlohmann::json(0))) + " tokens, " + any->precision +
         ", median of " + std::to_string(any->windows.size()) + " windows, spread at most " +
         percent(spread);
}

std::string bench_command(const TableSpec& table) {
  std::vector<std::string> configs;
  for (const RowSpec& row : table.rows) configs.push_back(row.config);
  return "forge bench " + join(configs, " ");
}

}  // namespace forge::report
