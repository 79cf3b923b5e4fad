#include "core/results/tables/comparability.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/base/json.h"
#include "core/base/text.h"
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
  if (const nlohmann::json* const value = find_value(config, path))
    add_leaves(*value, path, conditions);
}

/// Runs that meet the same conditions.
struct Group {
  std::vector<Condition> conditions;
  std::set<std::string> completed_rows;
  std::set<std::string> rows;
  std::string newest;

  auto rank() const { return std::make_tuple(completed_rows.size(), rows.size(), newest); }
};

}  // namespace

std::vector<Condition> conditions_of(const store::ConfiguredRun& run, const TableSpec& table) {
  const store::RunSummary& summary = run.summary;
  const nlohmann::json config = run::identity_config(run.config);
  const std::map<std::string, std::vector<Condition>> of_word = {
      {"data", {{"data", summary.data_fingerprint}}},
      {"tokenizer", {{"tokenizer", summary.tokenizer_fingerprint}}},
      {"evaluation", {{"evaluation", summary.evaluation}}},
      {"code", {{"code", summary.backend_version}}},
      {"device",
       {{"device", summary.device_type},
        {"device name", summary.device_name},
        {"threads", std::to_string(summary.threads)}}}};
  std::vector<Condition> conditions;
  for (const std::string& word : table.must_be_equal) {
    const auto found = of_word.find(word);
    if (found == of_word.end()) {
      add_config_key(config, word, conditions);
    } else {
      conditions.insert(conditions.end(), found->second.begin(), found->second.end());
    }
  }
  const auto is_varied = [&](const Condition& c) {
    return table.best_of && c.name == table.best_of->key;
  };
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_varied),
                   conditions.end());
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

std::vector<std::string> violations(const std::vector<Condition>& run,
                                    const std::vector<Condition>& group) {
  std::map<std::string, std::string> wanted;
  for (const Condition& condition : group) wanted[condition.name] = condition.value;
  std::vector<std::string> found;
  for (const Condition& condition : run) {
    const std::string& shown = wanted[condition.name];
    if (condition.value.empty() || shown.empty() || condition.value == shown) continue;
    found.push_back(condition.name + " " + condition.value + ", this table shows " + shown);
  }
  return found;
}

std::optional<std::vector<Condition>> choose_group(
    const TableSpec& table, const std::vector<const store::ConfiguredRun*>& runs) {
  std::map<std::string, Group> groups;
  for (const store::ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    std::vector<Condition> conditions = conditions_of(*run, table);
    std::string key;
    for (const Condition& condition : conditions)
      key += condition.name + '\n' + condition.value + '\n';
    Group& group = groups[key];
    group.conditions = std::move(conditions);
    group.rows.insert(summary.config);
    if (summary.status == run::RunState::completed) group.completed_rows.insert(summary.config);
    group.newest = std::max(group.newest, summary.created);
  }
  const auto best =
      std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
        return a.second.rank() < b.second.rank();
      });
  if (best == groups.end()) return std::nullopt;
  return best->second.conditions;
}

run::Identity identity_without_seed(const store::ConfiguredRun& run) {
  const store::RunSummary& summary = run.summary;
  run::Identity identity;
  identity.experiment = run::identity_config(run.config);
  identity.experiment.erase("seed");
  identity.data_fingerprint = summary.data_fingerprint;
  identity.tokenizer_fingerprint = summary.tokenizer_fingerprint;
  identity.backend = summary.backend;
  identity.device_type = summary.device_type;
  identity.threads = static_cast<int>(summary.threads);
  identity.numerics_version = static_cast<int>(summary.numerics_version);
  if (const nlohmann::json* const weights = find_value(run.config, "train.initial_weights"))
    identity.initial_weights = plain_text(*weights);
  return identity;
}

std::string difference_text(const run::Identity& own, const run::Identity& shown) {
  constexpr size_t most = 3;
  const std::vector<run::IdentityDifference> differences = run::identity_differences(own, shown);
  std::vector<std::string> parts;
  for (const run::IdentityDifference& difference : differences) {
    if (parts.size() == most) break;
    const auto text = [](const std::string& value) { return value.empty() ? "none" : value; };
    const bool is_hash = difference.what.find("fingerprint") != std::string::npos;
    parts.push_back(is_hash ? "other " + difference.what
                            : difference.what + " " + text(difference.left) + ", this row shows " +
                                  text(difference.right));
  }
  const size_t rest = differences.size() - parts.size();
  return join(parts, "; ") + (rest > 0 ? "; and " + std::to_string(rest) + " more" : "");
}

bool was_loaded(const store::RunSummary& run) {
  return run.busy_elsewhere.value_or(0) >= min_machine_load || run.shared_device != 0;
}

bool was_loaded(const Sample& sample) {
  return std::any_of(sample.runs.begin(), sample.runs.end(), [](const store::RunSummary& run) {
    return was_loaded(run);
  });
}

std::string load_text(const store::RunSummary& run) {
  std::vector<std::string> parts;
  if (run.busy_elsewhere.value_or(0) >= min_machine_load)
    parts.push_back("other processes kept " + results::percent_text(*run.busy_elsewhere) +
                    " of the machine busy");
  if (run.shared_device != 0) parts.emplace_back("another process held memory of its GPU");
  return join(parts, " and ");
}

std::string load_text(const Sample& sample) {
  const auto rank = [](const store::RunSummary& run) {
    return std::make_pair(run.shared_device, run.busy_elsewhere.value_or(0));
  };
  const auto most =
      std::max_element(sample.runs.begin(), sample.runs.end(), [&](const auto& a, const auto& b) {
        return rank(a) < rank(b);
      });
  return most == sample.runs.end() ? "" : load_text(*most);
}

}  // namespace forge::tables
