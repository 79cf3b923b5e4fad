#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/source.h"
#include "core/project/workspace.h"
#include "core/templating/render.h"
#include "core/templating/template_cache.h"
#include "core/yaml/node.h"
#include "core/yaml/section_cache.h"

namespace forge::project {

/// A config of a project: a template below <search folder>/<config_prefix>/.
struct Config {
  std::string name;            ///< path below the prefix without ".yaml": "train_canon_ac"
  std::string template_name;   ///< as templates refer to it: "configs/train_canon_ac.yaml"
  std::filesystem::path file;  ///< the first hit along the search path
};

/// A key of meta.yaml that forge does not know. Kept, because it is worth a warning.
struct UnknownKey {
  std::string key;
  SourceSpan origin;
};

/// What the renders of one command share, so that nothing is read or parsed twice. The files of a
/// project are seen as they were when they were first needed.
struct SharedWork {
  templating::TemplateCache templates;
  yaml::SectionCache sections;
};

/// A folder with meta.yaml, read.
struct Project {
  std::filesystem::path folder;  ///< absolute
  std::filesystem::path workspace_root;
  std::string path;  ///< below the workspace's root: "projects/canon"
  std::string name;  ///< display name; the folder's name where meta.yaml gives none
  std::string description;
  std::vector<std::filesystem::path> search_path;  ///< of its templates, absolute, first hit wins
  std::string config_prefix = "configs";
  std::vector<Config> configs;  ///< sorted bytewise by name
  std::string default_config;   ///< name without ".yaml": the declared one, else the first
  std::vector<UnknownKey> unknown_keys;
  std::shared_ptr<SharedWork> shared;  ///< with the projects that were loaded together with it

  /// The config of that name, with or without ".yaml", or null.
  const Config* find(std::string_view config_name) const;
};

/// Renders and reads the folder's meta.yaml and lists its configs. meta.yaml is a template that is
/// searched in the project, the workspace's settings folder and the user's
/// ~/.config/forgather/templates. Throws Error with the place in the template. `shared` is
/// that of another project that was loaded before; null: the project begins anew.
Project load_project(const Workspace& workspace,
                     const std::filesystem::path& folder,
                     const templating::Surroundings& surroundings,
                     std::shared_ptr<SharedWork> shared = nullptr);

/// The text of the project's meta.yaml.
templating::RenderedText render_meta(const Project& project,
                                     const Workspace& workspace,
                                     const templating::Surroundings& surroundings);

/// The config's YAML text with the place that each line came from.
templating::RenderedText render_config(const Project& project,
                                       const Config& config,
                                       const templating::Surroundings& surroundings,
                                       const templating::Variables& variables = {});

/// The text that was rendered for a project, as YAML; every node knows its place in a template.
yaml::NodePtr parse_rendered(const Project& project, const templating::RenderedText& rendered);

/// What a listing shows of a config.
struct ConfigSummary {
  std::string name;
  std::string description;
  bool trains = false;  ///< it has a section `train`: `forge run` can run it
};

/// Renders the config and takes its keys `name` and `description`, or, of a Forgather config, its
/// `meta` target's config_name and config_description.
ConfigSummary summarize(const Project& project,
                        const Config& config,
                        const templating::Surroundings& surroundings);

/// `name` less a final ".yaml".
std::string without_yaml(std::string_view name);

}  // namespace forge::project
