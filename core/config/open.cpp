#include "core/config/open.h"

#include "core/base/error.h"
#include "core/config/kind.h"
#include "core/project/names.h"

namespace forge::config {

OpenConfig open_config(const project::Project& project,
                       const std::string& config_name,
                       const ResolveOptions& options) {
  const project::Config& config = project::config_of(project, config_name);
  OpenConfig open;
  open.root = project::parse_rendered(
      project, project::render_config(project, config, options.surroundings, options.variables));
  if (is_experiment(*open.root)) {
    open.resolved = resolve(project, config.name, options);
  } else if (!options.overrides.empty()) {
    throw Error("--set changes keys of forge's own configs, and '" + config.name + "' is none",
                {},
                "a graph of calls takes the arguments that its templates declare");
  }
  return open;
}

std::vector<Leaf> leaves_of(const OpenConfig& config) {
  return config.resolved ? leaves_of(*config.resolved) : leaves_of(*config.root);
}

std::vector<Explanation> explain(const OpenConfig& config, const std::string& key) {
  return config.resolved ? explain(*config.resolved, key) : explain(*config.root, key);
}

}  // namespace forge::config
