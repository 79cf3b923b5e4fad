#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/keys.h"
#include "core/config/leaves.h"
#include "core/config/resolve.h"
#include "core/project/project.h"

namespace forge::config {

/// A value with all who gave it one, from the one that holds up to the default.
struct Explanation {
  std::string path;
  nlohmann::json value;
  std::vector<Setting> history;
  const Key* key = nullptr;  ///< of the schema; null in a graph of calls
};

/// Explains a key of a resolved config, or every key of a section. Throws Error with near misses
/// where the config has neither.
std::vector<Explanation> explain(const ResolvedConfig& resolved, const std::string& key);

/// The same for a path of a document: "trainer_args.lr", "callbacks[0].every". What a whole
/// section overrode that had the path counts too.
std::vector<Explanation> explain(const yaml::Node& root, const std::string& path);

/// [{"path", "value", "type", "help", "default", "set_by": …, "overrode": […]}, …], less what is
/// not known.
nlohmann::ordered_json to_json(const std::vector<Explanation>& explanations);

/// A config of either kind: one of forge's own is resolved, a graph of calls is read as it stands.
struct OpenConfig {
  std::optional<ResolvedConfig> resolved;
  yaml::NodePtr root;  ///< of a graph
};

/// Throws Error where the config is wrong, and where overrides are given for a graph.
OpenConfig open_config(const Document& document, const ResolveOptions& options);

std::vector<Leaf> leaves_of(const OpenConfig& config);
std::vector<Explanation> explain(const OpenConfig& config, const std::string& key);

}  // namespace forge::config
