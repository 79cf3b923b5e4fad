#pragma once

#include "core/graph/node.h"
#include "core/yaml/node.h"

namespace forge::graph {

/// Reads a parsed document as a graph by Forgather's rules for tags and arguments; nothing is
/// imported or called. Aliases of one anchor become one node. Throws Error at the place of an
/// unknown tag, a call without constructor, a container of the wrong shape, a root key that is no
/// name, or an identity that two nodes claim.
Graph read_graph(const yaml::NodePtr& document);

}  // namespace forge::graph
