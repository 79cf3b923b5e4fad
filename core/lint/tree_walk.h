#pragma once

#include <vector>

#include "core/yaml/node.h"

namespace forge::lint {

/// Every node of a tree, an aliased one once. They live as long as the root.
std::vector<const yaml::Node*> nodes_of(const yaml::Node& root);

}  // namespace forge::lint
