#pragma once

#include <functional>

#include "core/yaml/node.h"

namespace forge::lint {

/// Calls `visit` for each node of a tree, an aliased one once.
void for_each_node(const yaml::Node& root, const std::function<void(const yaml::Node&)>& visit);

}  // namespace forge::lint
