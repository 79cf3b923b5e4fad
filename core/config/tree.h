#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// The tree that says the same as `path: value` with a dotted path: nested mappings of one key
/// each. Each key's place is its part of the path as written at `path_origin`.
yaml::NodePtr nest(const std::string& path,
                   const SourceSpan& path_origin,
                   const yaml::NodePtr& value);

/// `over` laid upon `base`: mappings key by key, everything else replaced. Replaced values are
/// kept as `overridden` of their entry.
yaml::NodePtr merge(const yaml::NodePtr& base, const yaml::NodePtr& over);

/// The entries of a root whose keys are dotted and begin with `prefix`, in the order in which they
/// were written last: two of them may concern each other.
std::vector<const yaml::Entry*> dotted_entries(const yaml::Node& root,
                                               const std::string& prefix = "");

/// A value as one short line: "32", "[0.9, 0.999]", "a mapping".
std::string short_text(const yaml::Node& node);

/// A dotted key with its value: `--set train.max_steps=4`, or `train.max_steps: 4` at the root of
/// a config.
struct Assignment {
  std::string path;
  SourceSpan path_origin;
  yaml::NodePtr value;
};

/// Reads "path=value" as the command line gives it; the value is YAML, a scalar or in flow style.
/// Throws Error, with a caret under the argument, where '=' is missing, the value is no YAML or has
/// a comment, or nothing in the schema has that path.
Assignment parse_override(const std::string& argument);

/// Throws Error for a number that YAML 1.1 reads as another than its digits say: 010 is octal, 1:30
/// counts to 60. Who types one is asked which is meant.
void require_plain_number(const std::string& text, const SourceSpan& where = {});

/// Throws Error at the path's place where the schema has neither such a key nor such a section.
void check_path(const Assignment& assignment);

}  // namespace forge::config
