#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/project/project.h"

namespace forge::project {

/// A project with one of its configs.
struct NamedConfig {
  Project project;
  Config config;
};

/// Projects in the order of their folders, and the errors of those that could not be read.
struct ProjectList {
  std::vector<Project> projects;
  std::vector<Error> problems;
};

/// Loads the projects on all cores: projects_of(workspace) or projects_below(folder). `shared`,
/// here and below, is the command's cache; null makes a new one.
ProjectList load_projects(const std::vector<ProjectFolder>& folders,
                          const jinja::HostEnvironment& host_environment,
                          const std::shared_ptr<RenderCache>& shared = nullptr);

/// The project that a user means by `name`: a folder (from `here`), a path below the workspace or
/// the end of one ("canon", "projects/canon"), or a display name. Throws Error unless exactly one
/// project matches.
Project find_project(const Workspace& workspace,
                     const std::string& name,
                     const std::filesystem::path& here,
                     const jinja::HostEnvironment& host_environment,
                     const std::shared_ptr<RenderCache>& shared = nullptr);

/// The config that a user means by `name` from the folder `here`. The name is one of:
///   - a whole name of any project: "train_x" or "train_x.yaml";
///   - the prefix of exactly one name;
///   - either behind a project's name, as find_project takes it: "canon/train_x",
///     "projects/canon:train_x".
/// The enclosing project wins over others, also with a prefix. If several projects list one file,
/// the project that holds it wins. Throws Error with the candidates for an ambiguous name, and with
/// near misses for an unknown one.
NamedConfig find_config(const Workspace& workspace,
                        const std::string& name,
                        const std::filesystem::path& here,
                        const jinja::HostEnvironment& host_environment,
                        const std::shared_ptr<RenderCache>& shared = nullptr);

/// The config of that name, or the only one with that prefix. An empty name is the default config.
/// Throws Error with near misses.
const Config& config_of(const Project& project, const std::string& name);

/// Whether a name is a pattern: it has *, ? or [.
bool is_pattern(const std::string& name);

/// The configs whose names match a pattern as those of files do, but that * and ? also stand for a
/// slash. In the project's order; throws Error where none does.
std::vector<Config> configs_matching(const Project& project, const std::string& pattern);

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
/// it. The order of the projects is kept. `progress` counts the configs.
std::vector<ListedProject> list_configs(std::vector<Project> projects,
                                        const jinja::HostEnvironment& host_environment,
                                        const CountProgress& progress = {});

}  // namespace forge::project
