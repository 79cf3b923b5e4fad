#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/project/names.h"
#include "core/project/template_arguments.h"
#include "core/project/templates.h"
#include "core/yaml/graph/graph.h"

namespace forge::project {

/// What a project's meta.yaml says, and the templates that it came from.
struct MetaPage {
  Project project;
  graph::Graph keys;
  std::vector<TreeTemplate> templates;  ///< that meta.yaml was rendered from
};
MetaPage meta_page(const Project& project,
                   const Workspace& workspace,
                   const jinja::HostEnvironment& host_environment);

/// A config with the arguments that its templates take; none are known of a broken one.
struct ConfigEntry {
  Config config;
  ListedConfig listed;
  std::vector<TemplateArgument> arguments;
};

/// A project as a page: what it is about, where it lies, what can be run.
struct ProjectPage {
  MetaPage meta;
  std::string readme;  ///< the beginning of README.md without its title, ""
  std::vector<ConfigEntry> configs;

  bool all_configs_valid() const;  ///< no config is broken
};
ProjectPage project_page(const Project& project,
                         const Workspace& workspace,
                         const jinja::HostEnvironment& host_environment);

/// As Markdown; folders are named relative to `here`.
std::string to_markdown(const MetaPage& page, const std::filesystem::path& here);
std::string to_markdown(const ProjectPage& page, const std::filesystem::path& here);

/// {"project", "name", "description", "folder", "keys": {…}, "unknown_keys": [{"key", "at"}],
/// "templates": [...], "search_path": [{"folder", "exists"}]}
nlohmann::ordered_json to_json(const MetaPage& page);
/// The same with "readme", "default_config" and "configs": [{"config", "name", "description",
/// "trains", "default", "arguments": [...], "problem"?}].
nlohmann::ordered_json to_json(const ProjectPage& page);

}  // namespace forge::project
