#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/explain.h"
#include "core/config/leaves.h"
#include "core/config/resolve.h"
#include "core/project/project.h"

namespace forge::config {

/// A config of either kind: one of forge's own is resolved, a graph of calls is read as it stands.
struct OpenConfig {
  std::optional<ResolvedConfig> resolved;
  yaml::NodePtr root;  ///< of a graph
};

/// Throws Error where the config is wrong, and where overrides are given for a graph.
OpenConfig open_config(const project::Project& project,
                       const std::string& config_name,
                       const ResolveOptions& options);

std::vector<Leaf> leaves_of(const OpenConfig& config);
std::vector<Explanation> explain(const OpenConfig& config, const std::string& key);

}  // namespace forge::config
