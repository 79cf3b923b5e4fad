#include "core/report/page/configs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/config/leaves.h"
#include "core/run/identity.h"

namespace forge::report::page {
namespace {

/// Null, of a run whose config is not known, has no leaves.
Leaves leaves_of(const nlohmann::json& config) {
  Leaves leaves;
  if (!config.is_object()) return leaves;
  for (const config::Leaf& leaf : config::leaves_of_run(config, nullptr)) {
    if (leaf.path == "seed" || leaf.path == "name" || leaf.path == "description") continue;
    leaves[leaf.path] = config::shown_value(leaf.value);
  }
  return leaves;
}

/// For every key the value that most have; of equally frequent ones the first in the alphabet.
Leaves most_frequent(const std::vector<Leaves>& configs) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const Leaves& leaves : configs) {
    for (const auto& [key, value] : leaves) ++counts[key][value];
  }
  Leaves common;
  for (const auto& [key, values] : counts) {
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    common[key] = std::max_element(values.begin(), values.end(), by_count)->first;
  }
  return common;
}

/// Keys that are in no run's identity.
std::vector<std::string> harmless_keys(const std::vector<nlohmann::json>& of_runs,
                                       const Leaves& common) {
  Leaves identifying;
  for (const nlohmann::json& config : of_runs) {
    if (config.is_object()) identifying.merge(leaves_of(run::identifying_part(config)));
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
  std::vector<Leaves> distinct;
  std::map<Leaves, size_t> known;
  for (const nlohmann::json& config : of_runs) {
    Leaves leaves = leaves_of(config);
    const auto [entry, is_new] = known.try_emplace(leaves, distinct.size());
    if (is_new) distinct.push_back(std::move(leaves));
    configs.of_run.push_back(entry->second);
  }
  configs.common = most_frequent(distinct);
  configs.harmless = harmless_keys(of_runs, configs.common);
  for (const Leaves& leaves : distinct) {
    Leaves& changes = configs.changes.emplace_back();
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

}  // namespace forge::report::page
