#pragma once

#include <string>

#include "core/yaml/node.h"

namespace forge::config {

/// The tree that says the same as `path: value` with a dotted path: nested mappings of one key
/// each. Each key's place is its part of the path as written at `path_origin`.
yaml::NodePtr nest(const std::string& path,
                   const SourceSpan& path_origin,
                   const yaml::NodePtr& value);

/// `over` laid upon `base`: mappings key by key, everything else replaced. Replaced values are
/// kept as `overridden` of their entry.
yaml::NodePtr merge(const yaml::NodePtr& base, const yaml::NodePtr& over);

/// A value as one short line: "32", "[0.9, 0.999]", "a mapping".
std::string short_text(const yaml::Node& node);

}  // namespace forge::config
