#pragma once

#include <string>

#include "core/jinja/render.h"
#include "core/project/project.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// Whether a config's document is written in forge's own schema (an experiment or a model), rather
/// than a graph of calls for another program to make.
bool is_experiment(const yaml::Node& root);

/// Throws Error where a document is a graph of calls, with what forge can do with it.
void require_experiment(const yaml::Node& root);

/// A config as it was rendered and parsed.
struct ParsedConfig {
  jinja::RenderedText rendered;
  yaml::NodePtr root;
};
ParsedConfig parse_config(const project::Project& project,
                          const project::Config& config,
                          const jinja::HostEnvironment& host_environment,
                          const jinja::Variables& variables);

/// A config's document: rendered and parsed, every node tagged `!call:forge:from_project` (or
/// `!call:forgather:from_project`) replaced by what it names, origins kept. Such a node has
///     project_dir      folder of the other project, relative to the calling one
///     config_template  one of its configs, with or without ".yaml"
///     targets          a root key of that config, or a list of them (which gives a mapping), or
///                      "" for all
///     pp_kwargs        variables for the other config's templates
/// Dotted keys at the other config's root are applied there. Throws Error at the node where
/// something it names does not exist or where configs refer to each other in a circle.
yaml::NodePtr load_document(const project::Project& project,
                            const std::string& config_name,
                            const jinja::HostEnvironment& host_environment,
                            const jinja::Variables& variables);

/// The same for a config that the caller has parsed already.
yaml::NodePtr load_document(const project::Project& project,
                            const std::string& config_name,
                            const ParsedConfig& parsed,
                            const jinja::HostEnvironment& host_environment);

/// Whether a root key is a dotted path, to be applied like an override.
bool is_dotted(const std::string& key);

}  // namespace forge::config
