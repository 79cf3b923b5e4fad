#pragma once

#include <string>
#include <vector>

#include "core/base/source.h"
#include "core/yaml/node.h"

namespace forge::config {

/// A dotted key with its value: `--set train.max_steps=4`, or `train.max_steps: 4` at the root of
/// a config.
struct Assignment {
  std::string path;
  SourceSpan path_origin;
  yaml::NodePtr value;
};

/// Reads "path=value" as the command line gives it; the value is YAML, a scalar or in flow style.
/// Throws Error, with a caret under the argument, where '=' is missing, the value is no YAML or
/// nothing in the schema has that path.
Assignment parse_override(const std::string& argument);

/// Throws Error at the path's place where the schema has neither such a key nor such a section.
void check_path(const Assignment& assignment);

}  // namespace forge::config
