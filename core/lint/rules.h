#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config/document.h"
#include "core/jinja/loader.h"
#include "core/jinja/static_analysis.h"
#include "core/lint/check.h"
#include "core/project/project.h"
#include "core/project/template_arguments.h"
#include "core/yaml/yaml.h"

namespace forge::lint {

/// Analyses of template files, each made once for all configs that use the file. Any thread
/// may call; what is returned lives as long as the object.
class TemplateAnalyses {
 public:
  const std::vector<jinja::TemplateAnalysis>& get(const jinja::TemplateFile& file);

 private:
  struct Slot {
    std::once_flag once;
    std::vector<jinja::TemplateAnalysis> parts;
  };

  std::mutex mutex_;  ///< of slots_ alone
  std::unordered_map<const jinja::TemplateFile*, std::unique_ptr<Slot>> slots_;
};

/// A template that took part in a config's render.
struct UsedTemplate {
  const jinja::LoadedTemplate* loaded = nullptr;
  const jinja::TemplateAnalysis* analysis = nullptr;
};

/// A config that was rendered and parsed, with the facts that rules look at.
struct CheckedConfig {
  const project::Project& project;
  const project::Config& config;
  const jinja::HostEnvironment& host_environment;
  const jinja::Variables& variables;  ///< that the caller gives its templates
  config::ParsedConfig parsed = {};
  std::vector<const yaml::Node*> nodes = {};              ///< all of the document
  bool is_experiment = false;                             ///< in forge's own schema
  std::vector<project::TemplateArgument> arguments = {};  ///< that its templates take
  std::vector<UsedTemplate> templates = {};  ///< in order of loading, the config's own first
  /// Every template of every file that was loaded, also those that were not used.
  std::vector<const jinja::TemplateAnalysis*> parts = {};
  TryBlocks try_blocks = {};  ///< Selection's

  /// The used template of that name, or null.
  const UsedTemplate* find(const std::string& name) const;
};

/// All templates that this one extended in the render, nearest first.
std::vector<const UsedTemplate*> ancestors_of(const UsedTemplate& used,
                                              const CheckedConfig& checked);

/// Renders the config and gathers the facts. Findings: does-not-render and invalid-yaml, which
/// leave nothing to check; invalid-graph of a graph of calls; invalid-arguments.
std::optional<CheckedConfig> load_checked_config(const Selection& selection,
                                                 const project::Config& config,
                                                 const jinja::HostEnvironment& host_environment,
                                                 TemplateAnalyses& analyses,
                                                 Findings& findings);

// What `forge check` looks for. Each function adds what it finds in one config or project; none
// throws for what is wrong with a template.

/// unknown-meta-key: keys of meta.yaml.
void check_project(const project::Project& project, Findings& findings);

/// For a config of forge: unknown-key, wrong-value, missing-key, disagreement, missing-file,
/// unsupported, and does-not-resolve for what hides the rest.
void check_experiment(const CheckedConfig& checked, Findings& findings);

/// For a graph of calls: identity-as-constructor, lost-identity.
void check_graph(const CheckedConfig& checked, Findings& findings);

/// stray-quote: the arguments that a config declares for its templates.
void check_arguments(const CheckedConfig& checked, Findings& findings);

/// unknown-block: a block that overrides nothing in the templates that its own one extends.
void check_blocks(const CheckedConfig& checked, Findings& findings);

/// stands-alone: a config that extends and includes nothing.
void check_parent(const CheckedConfig& checked, Findings& findings);

/// duplicate-inline, unused-inline
void check_inline_templates(const CheckedConfig& checked, Findings& findings);

/// outside-blocks: a key of forge's configs in no block of a template that extends another one.
void check_text_outside_blocks(const CheckedConfig& checked, Findings& findings);

/// never-read: a variable that is set, and that no template of the config reads behind that.
void check_unread_variables(const CheckedConfig& checked, Findings& findings);

/// never-set: a variable that is read with a default everywhere and set nowhere.
void check_variables(const CheckedConfig& checked, Findings& findings);

/// yaml-versions: what readers of YAML 1.1 and 1.2 take differently.
void check_scalars(const CheckedConfig& checked, Findings& findings);

/// A plain scalar that readers of YAML 1.1 (PyYAML) and of YAML 1.2 (its core schema) take for
/// different values.
struct YamlVersionDifference {
  std::string in_1_1;  ///< "true", "the number 8", "text"
  std::string in_1_2;
  std::string advice;            ///< how to write it so that both agree
  bool is_text_or_real = false;  ///< like 1e-3: text in YAML 1.1, a real number in 1.2
};

/// Nothing where both read the same.
std::optional<YamlVersionDifference> yaml_version_difference(std::string_view plain);

/// The key that a line gives at the root of a config: "model.canon.set: AC" -> "model.canon.set";
/// "" for other lines.
std::string root_key(std::string_view line);

/// repeated-key: a key that one block of one template gives twice.
void check_repeated_keys(const CheckedConfig& checked, Findings& findings);

/// dotted-key-wins: a value in a section or a profile that replaces nothing, because an inherited
/// dotted key, or one further up, wins.
void check_dotted_keys(const CheckedConfig& checked, Findings& findings);

/// overrides-without-super: a block `overrides` that drops keys of an inherited one.
/// section-replaced: a section in such a block that drops keys of the inherited section.
void check_overrides(const CheckedConfig& checked, Findings& findings);

}  // namespace forge::lint
