#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/graph/node.h"
#include "core/inspect/template_tree.h"
#include "core/project/listing.h"
#include "core/project/template_arguments.h"

namespace forge::inspect {

/// A folder of a project's template search path.
struct SearchFolder {
  std::filesystem::path folder;
  bool exists = false;
};

/// What a project's meta.yaml says and how it came to say so.
struct MetaPage {
  project::Project project;
  graph::Graph keys;
  std::vector<TreeTemplate> templates;  ///< that meta.yaml was rendered from
  std::vector<SearchFolder> search_path;
};
MetaPage meta_page(const project::Project& project,
                   const project::Workspace& workspace,
                   const templating::Surroundings& surroundings);

/// A config with the arguments that its templates take; none are known of a broken one.
struct IndexedConfig {
  project::Config config;
  project::ListedConfig listed;
  std::vector<project::TemplateArgument> arguments;
};

/// A project as a page: what it is about, where it lies, what can be run.
struct IndexPage {
  MetaPage meta;
  std::string readme;  ///< the beginning of README.md without its title, ""
  std::vector<IndexedConfig> configs;

  bool is_sound() const;  ///< no config is broken
};
IndexPage index_page(const project::Project& project,
                     const project::Workspace& workspace,
                     const templating::Surroundings& surroundings);

/// As Markdown; folders are named relative to `here`.
std::string to_markdown(const MetaPage& page, const std::filesystem::path& here);
std::string to_markdown(const IndexPage& page, const std::filesystem::path& here);

/// {"project", "name", "description", "folder", "keys": {…}, "unknown_keys": [{"key", "at"}],
/// "templates": [...], "search_path": [{"folder", "exists"}]}
nlohmann::ordered_json to_json(const MetaPage& page);
/// The same with "readme", "default_config" and "configs": [{"config", "name", "description",
/// "trains", "default", "arguments": [...], "problem"?}].
nlohmann::ordered_json to_json(const IndexPage& page);

}  // namespace forge::inspect
