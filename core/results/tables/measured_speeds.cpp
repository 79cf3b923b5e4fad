#include "core/results/tables/measured_speeds.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/own_blocks.h"
#include "core/results/metrics.h"
#include "core/results/tables/comparability.h"
#include "core/run/host.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using benchmark::Record;

constexpr const char* device_key = "device";
constexpr const char* processes_key = "processes";
constexpr const char* program_key = "program";

SpeedSettings texts_of(nlohmann::json sections) {
  config::reduce_own_blocks(sections);
  SpeedSettings settings;
  for (const auto& [key, value] : run::dotted_leaves(sections)) settings[key] = plain_text(value);
  return settings;
}

std::string device_text_of(const Record& record) {
  return run::device_text(record.device.type, record.device.name, record.device.threads);
}

/// As it was measured. A record of an older forge knows the type of the optimizer, and else nothing
/// of sections other than the model's and `train`.
SpeedSettings speed_settings_of(const Record& record) {
  nlohmann::json sections = record.settings;
  sections["model"] = record.model;
  sections["train"] = record.train;
  sections["train"].erase("optimizer");
  sections["train"].erase("initial_weights_seed");
  if (record.train.contains("optimizer")) sections["optimizer"]["type"] = record.train["optimizer"];
  SpeedSettings settings = texts_of(std::move(sections));
  settings[device_key] = device_text_of(record);
  settings[processes_key] = std::to_string(record.processes);
  settings[program_key] = record.program;
  return settings;
}

/// A setting that differs; none: there is no such key.
struct Difference {
  std::optional<std::string> measured, own;
};

std::map<std::string, Difference> differences_between(const SpeedSettings& measured,
                                                      const SpeedSettings& own) {
  std::map<std::string, Difference> all;
  for (const auto& [key, value] : measured) all[key].measured = value;
  for (const auto& [key, value] : own) all[key].own = value;
  for (auto entry = all.begin(); entry != all.end();)
    entry = entry->second.measured == entry->second.own ? all.erase(entry) : std::next(entry);
  return all;
}

std::string section_of(const std::string& key) { return key.substr(0, key.find('.')); }

/// Whether best_of may vary the key while the speed stays as it is.
bool is_varied_at_one_speed(const std::string& key, const TableSpec& table) {
  return table.best_of && table.best_of->key == key && !starts_with(key, "train.") &&
         key != "optimizer.type";
}

}  // namespace

SpeedSettings speed_settings_of(const nlohmann::json& config) {
  const nlohmann::json complete = config::to_json(config::experiment_from_json(config));
  nlohmann::json sections = benchmark::speed_settings(complete);
  sections["model"] = complete.at("model");
  sections["train"] = benchmark::speed_keys(complete);
  sections["train"].erase("optimizer");
  return texts_of(std::move(sections));
}

SpeedSettings speed_settings_of(const store::ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  SpeedSettings settings = speed_settings_of(run.config);
  // As its attempts were trained, whatever the config asks for.
  if (summary.micro_batch_size)
    settings["train.micro_batch_size"] = std::to_string(*summary.micro_batch_size);
  if (!summary.recompute.empty()) settings["train.recompute"] = summary.recompute;
  if (summary.recompute == "none") settings.erase("train.recompute");  // as a config says it
  if (!summary.processes.empty()) settings[processes_key] = summary.processes;
  if (!summary.device_type.empty())
    settings[device_key] =
        run::device_text(summary.device_type, summary.device_name, summary.threads);
  settings[program_key] = summary.program;
  return settings;
}

std::string why_of_other_training(const Record& record,
                                  const SpeedSettings& own,
                                  const std::string& whose,
                                  const TableSpec& table) {
  if (const auto program = own.find(program_key);
      program != own.end() && program->second != record.program)
    return "measured with other files of its command than " + whose +
           ": 'forge bench' measures anew";
  const std::map<std::string, Difference> differences =
      differences_between(speed_settings_of(record), own);
  std::set<std::string> sections;  // in which both have another value
  for (const auto& [key, values] : differences)
    if (values.measured && values.own) sections.insert(section_of(key));
  std::vector<std::string> texts;
  for (const auto& [key, values] : differences) {
    // Nobody knows on what something will be trained, nor what a record of an older forge leaves
    // out.
    const bool is_unknown =
        (!values.own && (key == device_key || key == processes_key || key == program_key)) ||
        (!values.measured && record.settings.empty());
    // Each type of optimizer has settings of its own, and each source of data.
    const bool follows = !(values.measured && values.own) && section_of(key) != "train" &&
                         sections.count(section_of(key)) > 0;
    if (is_unknown || follows || is_varied_at_one_speed(key, table)) continue;
    texts.push_back(key + " " + values.measured.value_or("none") + " (" + whose + ": " +
                    values.own.value_or("none") + ")");
  }
  return texts.empty() ? "" : "measured with " + first_of(texts);
}

namespace {

/// What a call of `forge bench` measured as rows are trained, by their places.
struct CallRecords {
  std::string created;
  std::map<size_t, const Record*> of_row;
};

/// Why a measurement is not comparable with the reference; "" if it is.
std::string why_not_comparable(const Record& record, const Record& reference) {
  std::vector<std::string> parts;
  if (record.call.id != reference.call.id)
    parts.push_back("measured in another call, on " + record.call.created.substr(0, 10));
  if (record.device.backend != reference.device.backend)
    parts.push_back("of backend " + record.device.backend);
  if (record.processes != reference.processes)
    parts.push_back("by " + std::to_string(record.processes) +
                    (record.processes == 1 ? " process" : " processes"));
  if (device_text_of(record) != device_text_of(reference))
    parts.push_back("on " + device_text_of(record));
  const std::map<std::string, nlohmann::json> others = run::dotted_leaves(reference.train);
  for (const auto& [key, value] : run::dotted_leaves(record.train)) {
    const auto other = others.find(key);
    if (other != others.end() && other->second != value)
      parts.push_back("train." + key + " " + json_text(value) + " where others have " +
                      json_text(other->second));
  }
  return join(parts, ", ");
}

/// A measurement of a row's config, and why it is not the row's own.
struct Candidate {
  const Record* record;
  std::string why_not_its_own;

  auto rank() const { return std::make_tuple(why_not_its_own.empty(), record->call.created); }
};

std::vector<Candidate> candidates_of(const SpeedRow& row, const std::vector<Record>& records) {
  std::vector<Candidate> candidates;
  for (const Record& record : records)
    if (record.kind == benchmark::Kind::training && record.config == row.config)
      candidates.push_back({&record, row.why_not_its_own(record)});
  return candidates;
}

}  // namespace

std::vector<std::optional<MeasuredSpeed>> choose_speeds(const TableSpec& table,
                                                        const std::vector<SpeedRow>& rows,
                                                        const std::vector<Record>& records) {
  std::vector<std::vector<Candidate>> candidates;
  std::map<std::string, CallRecords> calls;
  size_t baseline = rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].config == table.baseline) baseline = i;
    candidates.push_back(candidates_of(rows[i], records));
    for (const Candidate& candidate : candidates.back()) {
      if (!candidate.why_not_its_own.empty()) continue;
      CallRecords& call = calls[candidate.record->call.id];
      call.created = candidate.record->call.created;
      call.of_row.emplace(i, candidate.record);
    }
  }
  const auto score = [&](const CallRecords& call) {
    return std::make_tuple(call.of_row.size(), call.of_row.count(baseline) > 0, call.created);
  };
  const auto best = std::max_element(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return score(a.second) < score(b.second);
  });
  const std::map<size_t, const Record*> chosen =
      best == calls.end() ? std::map<size_t, const Record*>() : best->second.of_row;
  const auto of_baseline = chosen.find(baseline);
  const Record* const reference = chosen.empty()                ? nullptr
                                  : of_baseline != chosen.end() ? of_baseline->second
                                                                : chosen.begin()->second;
  std::vector<std::optional<MeasuredSpeed>> speeds(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto newest = std::max_element(
        candidates[i].begin(), candidates[i].end(), [](const Candidate& a, const Candidate& b) {
          return a.rank() < b.rank();
        });
    if (newest == candidates[i].end()) continue;
    const auto of_call = chosen.find(i);
    const Record& record = of_call != chosen.end() ? *of_call->second : *newest->record;
    speeds[i] = {record,
                 !newest->why_not_its_own.empty() ? newest->why_not_its_own
                                                  : why_not_comparable(record, *reference),
                 {}};
    for (const auto& [id, call] : calls)
      if (call.of_row.count(i) > 0 && call.created < record.call.created)
        speeds[i]->earlier_calls.push_back(call.created);
  }
  return speeds;
}

std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds) {
  const Record* any = nullptr;
  double spread = 0;
  for (const std::optional<MeasuredSpeed>& speed : speeds) {
    if (!speed || !speed->not_comparable_because.empty()) continue;
    if (!any) any = &speed->record;
    spread = std::max(spread, speed->record.spread);
  }
  if (!any) return "";
  const std::string by =
      any->processes > 1 ? ", by " + std::to_string(any->processes) + " processes" : "";
  return "forge bench on " + any->call.created.substr(0, 10) + ", " + device_text_of(*any) + by +
         ", " + json_text(any->train.value("batch_size", nlohmann::json(0))) + " \u00d7 " +
         json_text(any->train.value("seq_len", nlohmann::json(0))) + " tokens, " + any->precision +
         ", median of " + std::to_string(any->windows.size()) +
         " windows, spread within one process at most " + results::percent_text(spread);
}

std::string bench_command(const TableSpec& table) {
  std::vector<std::string> configs;
  for (const RowSpec& row : table.rows) configs.push_back(row.config);
  return "forge bench " + shell_quoted(configs) + table.project_option;
}

}  // namespace forge::tables
