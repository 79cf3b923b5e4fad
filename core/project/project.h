#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/jinja/loader.h"
#include "core/jinja/render.h"
#include "core/project/workspace.h"
#include "core/yaml/graph/graph.h"
#include "core/yaml/section_cache.h"
#include "core/yaml/yaml.h"

namespace forge::project {

/// A config of a project: a template below <search folder>/<config_prefix>/.
struct Config {
  std::string name;            ///< path below the prefix without ".yaml": "train_canon_ac"
  std::string template_name;   ///< as templates refer to it: "configs/train_canon_ac.yaml"
  std::filesystem::path file;  ///< the first hit along the search path
};

/// The configs of a project, sorted bytewise by name. Copies of a project share them: a command
/// holds one with each config, and a project may have thousands.
class ConfigList {
 public:
  ConfigList() : ConfigList(std::vector<Config>()) {}
  explicit ConfigList(std::vector<Config> sorted)
      : configs_(std::make_shared<const std::vector<Config>>(std::move(sorted))) {}

  auto begin() const { return configs_->begin(); }
  auto end() const { return configs_->end(); }
  size_t size() const { return configs_->size(); }
  bool empty() const { return configs_->empty(); }
  const Config& front() const { return configs_->front(); }
  const Config& operator[](size_t index) const { return (*configs_)[index]; }

 private:
  std::shared_ptr<const std::vector<Config>> configs_;
};

/// A key of meta.yaml that forge does not know. Kept, because it is worth a warning.
struct UnknownKey {
  std::string key;
  SourceSpan origin;
};

struct RenderCache;

/// A folder with meta.yaml, read.
struct Project {
  std::filesystem::path folder;  ///< absolute
  std::filesystem::path workspace_root;
  std::string path;  ///< below the workspace's root: "projects/canon"
  std::string name;  ///< display name; the folder's name where meta.yaml gives none
  std::string description;
  std::vector<std::filesystem::path> search_path;  ///< of its templates, absolute, first hit wins
  std::string config_prefix = "configs";
  ConfigList configs;
  std::string default_config;  ///< name without ".yaml": the declared one, else the first
  std::vector<UnknownKey> unknown_keys;
  /// Files among the configs that are none, since no command could take their names.
  std::vector<std::filesystem::path> misnamed_configs;
  std::shared_ptr<RenderCache> shared;  ///< with the other projects of the command

  /// The config of that name, with or without ".yaml", or null.
  const Config* find(std::string_view config_name) const;
};

/// A config that others call, and its project.
struct CalledConfig {
  Project project;
  yaml::NodePtr root;  ///< as the caller sees it
};

/// What the renders of one command have in common: files read and parsed, projects loaded. Each is
/// read once, as it was when first needed. Any thread may use it.
struct RenderCache {
  jinja::TemplateCache templates;
  yaml::SectionCache sections;
  std::mutex mutex;  ///< of `projects` and `called`
  /// By the root of the workspace and the project's folder; without their `shared`.
  std::map<std::pair<std::filesystem::path, std::filesystem::path>, Project> projects;
  /// By the project's folder and the config's name; without variables and `shared`.
  std::map<std::pair<std::filesystem::path, std::string>, CalledConfig> called;
};

/// Renders and reads the folder's meta.yaml and lists its configs. meta.yaml is a template that is
/// searched in the project, the workspace's settings folder and the user's
/// ~/.config/forgather/templates. Throws Error with the place in the template. A project
/// that `shared` holds is not read again; null makes a new cache.
Project load_project(const Workspace& workspace,
                     const std::filesystem::path& folder,
                     const jinja::HostEnvironment& host_environment,
                     std::shared_ptr<RenderCache> shared = nullptr);

/// The text of the project's meta.yaml.
jinja::RenderedText render_meta(const Project& project,
                                const Workspace& workspace,
                                const jinja::HostEnvironment& host_environment);

/// The config's YAML text with the place that each line came from.
jinja::RenderedText render_config(const Project& project,
                                  const Config& config,
                                  const jinja::HostEnvironment& host_environment,
                                  const jinja::Variables& variables = {});

/// The text that was rendered for a project, as YAML; every node knows its place in a template.
yaml::NodePtr parse_rendered(const Project& project, const jinja::RenderedText& rendered);

/// What a listing shows of a config.
struct ConfigSummary {
  std::string name;
  std::string description;
  bool trains = false;  ///< it has a section `train`: `forge run` can run it
};

/// The keys `name` and `description` of a config's document, or, of a Forgather config, its `meta`
/// target's config_name and config_description.
ConfigSummary summary_of(const yaml::Node& root);

/// The same of a config, which is rendered for it.
ConfigSummary summarize(const Project& project,
                        const Config& config,
                        const jinja::HostEnvironment& host_environment);

/// Names of the wanted files below a folder, relative to it and sorted bytewise. Hidden files and
/// folders are left out.
std::vector<std::string> files_below(const std::filesystem::path& folder,
                                     bool (*is_wanted)(const std::filesystem::path&));

/// `name` less a final ".yaml".
std::string without_yaml(std::string_view name);

/// Whether a config, or a project's folder, may have this name: a path whose parts have letters,
/// digits, '_', '-' and '.', and begin with a letter, digit or '_'. Others would be an option or a
/// pattern in a command.
bool is_plain_name(const std::string& name);
/// The same rule in words.
extern const char* const plain_name_rule;

/// One warning about the files that are no configs for their names, if there are any.
std::vector<std::string> misnamed_warnings(const Project& project);

/// Renders a config and reads it as a graph. Throws Error with the place in the template.
graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const jinja::HostEnvironment& host_environment,
                        const jinja::Variables& variables = {});

}  // namespace forge::project
