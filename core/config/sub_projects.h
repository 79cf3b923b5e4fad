#pragma once

#include <string>

#include "core/project/project.h"
#include "core/yaml/node.h"

namespace forge::config {

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
                            const templating::Surroundings& surroundings,
                            const templating::Variables& variables);

/// Whether a root key is a dotted path, to be applied like an override.
bool is_dotted(const std::string& key);

}  // namespace forge::config
