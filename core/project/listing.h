#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/project/project.h"

namespace forge::project {

/// A config of a listing: what it says of itself, or why it cannot be resolved.
struct ListedConfig {
  ConfigSummary summary;         ///< named after its file where it gives itself no name
  std::optional<Error> problem;  ///< the reason why the config is broken
};

/// A project with its configs, in the order of `project.configs`.
struct ListedProject {
  Project project;
  std::vector<ListedConfig> configs;
};

/// Summarises every config of the projects, on all cores; what is wrong with one config stays with
/// it. The order of the projects is kept.
std::vector<ListedProject> list_configs(std::vector<Project> projects,
                                        const templating::Surroundings& surroundings);

}  // namespace forge::project
