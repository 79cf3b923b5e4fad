#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/project/project.h"

namespace forge::project {

/// A project with one of its configs.
struct NamedConfig {
  Project project;
  Config config;
};

/// All projects of a workspace; those whose meta.yaml is wrong are left out and say why.
struct ProjectList {
  std::vector<Project> projects;  ///< sorted bytewise by path
  std::vector<Error> problems;
};
ProjectList load_projects(const Workspace& workspace, const templating::Surroundings& surroundings);

/// All projects below a folder, whatever workspaces they are in.
ProjectList load_projects_below(const std::filesystem::path& folder,
                                const templating::Surroundings& surroundings);

/// The project that a user means by `name`: a folder (from `here`), a path below the workspace or
/// the end of one ("canon", "projects/canon"), or a display name. Throws Error where none or more
/// than one is meant.
Project find_project(const Workspace& workspace,
                     const std::string& name,
                     const std::filesystem::path& here,
                     const templating::Surroundings& surroundings);

/// The config that a user means by `name` from the folder `here`: "train_x", "train_x.yaml" or,
/// where that is no whole name, the beginning of just one, of any project, or qualified by a
/// project as find_project knows it: "canon/train_x", "projects/canon:train_x". The enclosing
/// project's own wins over others, even by its beginning; of several projects that list one file,
/// the one that holds it. Throws Error with the candidates where the name is ambiguous, with near
/// misses where it is unknown.
NamedConfig find_config(const Workspace& workspace,
                        const std::string& name,
                        const std::filesystem::path& here,
                        const templating::Surroundings& surroundings);

/// The config of that name or with a name that begins so, or Error with near misses. An empty name
/// is the default config.
const Config& config_of(const Project& project, const std::string& name);

/// Whether a name is a pattern: it has *, ? or [.
bool is_pattern(const std::string& name);

/// The configs whose names match a pattern as those of files do, but that * and ? also stand for a
/// slash. In the project's order; throws Error where none does.
std::vector<Config> configs_matching(const Project& project, const std::string& pattern);

}  // namespace forge::project
