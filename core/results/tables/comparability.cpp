#include "core/results/tables/comparability.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/json.h"
#include "core/results/metrics.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

/// The leaves of a config's key or section.
void add_leaves(const nlohmann::json& value,
                const std::string& path,
                std::vector<Condition>& conditions) {
  if (!value.is_object()) {
    conditions.push_back({path, plain_text(value)});
    return;
  }
  for (const auto& [key, inner] : value.items()) add_leaves(inner, path + "." + key, conditions);
}

void add_config_key(const nlohmann::json& config,
                    const std::string& path,
                    std::vector<Condition>& conditions) {
  const nlohmann::json* const value = find_value(config, path);
  if (value) add_leaves(*value, path, conditions);  // else written by a forge without the key
}

using Score = std::tuple<size_t, size_t, std::string>;

struct Group {
  std::vector<Condition> conditions;
  std::set<std::string> completed_rows;
  std::set<std::string> rows;
  std::string newest;

  Score score() const { return {completed_rows.size(), rows.size(), newest}; }
};

std::string key_of(const std::vector<Condition>& conditions) {
  std::string key;
  for (const Condition& condition : conditions) {
    key += condition.name + '\n' + condition.value + '\n';
  }
  return key;
}

}  // namespace

std::vector<Condition> conditions_of(const store::ConfiguredRun& run, const TableSpec& table) {
  const store::RunSummary& summary = run.summary;
  const nlohmann::json config = run::identity_config(run.config);
  std::vector<Condition> conditions;
  for (const std::string& word : table.must_be_equal) {
    if (word == "data") {
      conditions.push_back({"data", summary.data_fingerprint});
    } else if (word == "tokenizer") {
      conditions.push_back({"tokenizer", summary.tokenizer_fingerprint});
    } else if (word == "evaluation") {
      conditions.push_back({"evaluation", summary.evaluation});
    } else if (word == "code") {
      conditions.push_back({"code", summary.backend_version});
    } else if (word == "device") {
      conditions.push_back({"device", summary.device_type});
      conditions.push_back({"device name", summary.device_name});
      conditions.push_back({"threads", std::to_string(summary.threads)});
    } else {
      add_config_key(config, word, conditions);
    }
  }
  if (table.best_of) {
    const auto is_varied = [&](const Condition& c) { return c.name == table.best_of->key; };
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_varied),
                     conditions.end());
  }
  conditions.push_back({"backend", summary.backend});
  conditions.push_back({"numerics", std::to_string(summary.numerics_version)});
  // Each backend counts the changes of its own arithmetic.
  const auto divides = [&](const Condition& c) {
    return c.name == table.by || (table.by == "backend" && c.name == "numerics");
  };
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(), divides), conditions.end());
  return conditions;
}

std::string group_of(const store::ConfiguredRun& run, const TableSpec& table) {
  if (table.by.empty()) return "";
  if (table.by == "backend") return run.summary.backend;
  std::vector<Condition> leaf;
  add_config_key(run.config, table.by, leaf);
  return leaf.empty() ? "" : leaf.front().value;
}

std::vector<std::string> differences(const std::vector<Condition>& run,
                                     const std::vector<Condition>& group) {
  std::map<std::string, std::string> wanted;
  for (const Condition& condition : group) wanted[condition.name] = condition.value;
  std::vector<std::string> found;
  for (const Condition& condition : run) {
    const auto entry = wanted.find(condition.name);
    if (entry == wanted.end() || condition.value.empty() || entry->second.empty()) continue;
    if (entry->second != condition.value)
      found.push_back(condition.name + " " + condition.value + ", this table shows " +
                      entry->second);
  }
  return found;
}

std::optional<std::string> difference(const std::vector<Condition>& run,
                                      const std::vector<Condition>& group) {
  std::vector<std::string> all = differences(run, group);
  if (all.empty()) return std::nullopt;
  return std::move(all.front());
}

std::optional<std::vector<Condition>> choose_group(
    const TableSpec& table, const std::vector<const store::ConfiguredRun*>& runs) {
  std::set<std::string> configs;
  for (const RowSpec& row : table.rows) configs.insert(row.config);
  std::map<std::string, Group> groups;
  for (const store::ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    if (configs.count(summary.config) == 0) continue;
    std::vector<Condition> conditions = conditions_of(*run, table);
    Group& group = groups[key_of(conditions)];
    group.conditions = std::move(conditions);
    group.rows.insert(summary.config);
    if (summary.status == run::RunState::completed) group.completed_rows.insert(summary.config);
    group.newest = std::max(group.newest, summary.created);
  }
  const Group* best = nullptr;
  for (const auto& [key, group] : groups) {
    if (!best || group.score() > best->score()) best = &group;
  }
  if (!best) return std::nullopt;
  return best->conditions;
}

namespace {

bool was_busy(const store::RunSummary& run) { return run.busy_elsewhere.value_or(0) >= busy_from; }

}  // namespace

bool was_loaded(const store::RunSummary& run) { return was_busy(run) || run.shared_device != 0; }

bool was_loaded(const Sample& sample) {
  return std::any_of(sample.runs.begin(), sample.runs.end(), [](const store::RunSummary& run) {
    return was_loaded(run);
  });
}

std::string load_text(const store::RunSummary& run) {
  std::string text;
  if (was_busy(run))
    text = "other processes kept " + results::percent_text(*run.busy_elsewhere) +
           " of the machine busy";
  if (run.shared_device == 0) return text;
  const std::string shared = "another process held memory of its GPU";
  return text.empty() ? shared : text + " and " + shared;
}

std::string load_text(const Sample& sample) {
  const auto most =
      std::max_element(sample.runs.begin(),
                       sample.runs.end(),
                       [](const store::RunSummary& a, const store::RunSummary& b) {
                         const auto rank = [](const store::RunSummary& run) {
                           return std::make_pair(run.shared_device, run.busy_elsewhere.value_or(0));
                         };
                         return rank(a) < rank(b);
                       });
  return most == sample.runs.end() ? "" : load_text(*most);
}

}  // namespace forge::tables
