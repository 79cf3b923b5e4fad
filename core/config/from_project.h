#pragma once

#include <string>

#include "core/templating/render.h"
#include "core/yaml/node.h"

namespace forge::config {

/// What a node tagged `!call:forge:from_project` asks for.
struct FromProject {
  std::string project_dir;
  std::string config_template;
  yaml::NodePtr targets;  ///< null where the call names none
  templating::Variables variables;
  SourceSpan project_origin;
  SourceSpan config_origin;
};

/// Whether the node is such a call; `!call:forgather:from_project` is one too.
bool is_from_project(const yaml::Node& node);

/// Its arguments. Throws Error where one is missing, unknown or of a wrong type.
FromProject read_from_project(const yaml::Node& node);

}  // namespace forge::config
