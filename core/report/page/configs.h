#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace forge::report::page {

/// The values of a config by dotted key, as they are shown.
using Leaves = std::map<std::string, std::string>;

/// Several configs as what most of them have and what each has of its own.
struct Configs {
  Leaves common;                                ///< for every key the value that most configs have
  std::vector<Leaves> changes;                  ///< of each config, where it has another value
  std::vector<std::vector<std::string>> lacks;  ///< keys of `common` that a config does not have
  std::vector<std::string> harmless;            ///< keys that changed no figure of any of the runs
  std::vector<size_t> of_run;                   ///< which config each run has
};

/// Of the resolved configs of runs. The seed, the name and the description make no other config.
Configs compare_configs(const std::vector<nlohmann::json>& of_runs);

nlohmann::ordered_json to_json(const Configs& configs);

}  // namespace forge::report::page
