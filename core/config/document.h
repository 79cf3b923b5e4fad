#pragma once

#include <string>

#include "core/jinja/render.h"
#include "core/project/project.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// Whether a config's document is written in forge's own schema (an experiment or a model), rather
/// than a graph of calls for another program to make.
bool is_experiment(const yaml::Node& root);

/// A config as it was rendered and parsed.
struct ParsedConfig {
  jinja::RenderedText rendered;
  yaml::NodePtr root;
};
ParsedConfig parse_config(const project::Project& project,
                          const project::Config& config,
                          const jinja::HostEnvironment& host_environment,
                          const jinja::Variables& variables);

/// The document of a config that forge runs, read once. It is resolved as often as there are
/// devices and overrides to resolve it for.
struct Document {
  project::Project project;
  std::string config_name;  ///< without ".yaml"
  yaml::NodePtr parsed;     ///< as the templates have it
  yaml::NodePtr root;       ///< with its sub-projects expanded; null of a graph of calls
  SourceSpan begin;         ///< the place of what is wrong with the whole
};

/// The document's root. Throws Error where it is a graph of calls, with what forge can do with it,
/// or no mapping.
const yaml::NodePtr& require_experiment(const Document& document);

/// Renders and parses a config and expands its sub-projects: every node tagged
/// `!call:forge:from_project` (or
/// `!call:forgather:from_project`) replaced by what it names, origins kept. Such a node has
///     project_dir      folder of the other project, relative to the calling one
///     config_template  one of its configs, with or without ".yaml"
///     targets          a root key of that config, or a list of them (which gives a mapping), or
///                      "" for all
///     pp_kwargs        variables for the other config's templates
/// Dotted keys at the other config's root are applied there. Throws Error at the node where
/// something it names does not exist or where configs refer to each other in a circle. A graph of
/// calls is not changed.
Document read_document(const project::Project& project,
                       const std::string& config_name,
                       const jinja::HostEnvironment& host_environment,
                       const jinja::Variables& variables = {});

/// The same for a config that the caller has parsed already.
Document read_document(const project::Project& project,
                       const project::Config& config,
                       const ParsedConfig& parsed,
                       const jinja::HostEnvironment& host_environment);

/// Whether a root key is a dotted path, to be applied like an override.
bool is_dotted(const std::string& key);

}  // namespace forge::config
