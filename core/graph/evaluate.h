#pragma once

#include <map>
#include <string>

#include "core/graph/node.h"

namespace forge::graph {

/// What !var looks up.
using Bindings = std::map<std::string, NodePtr>;

/// The node with every variable replaced by its binding, else by its default, and !list, !dlist,
/// !tuple and !dict by plain containers. Calls stay as they are, with evaluated arguments. Throws
/// Error where a variable has neither binding nor default.
NodePtr evaluate(const NodePtr& node, const Bindings& bindings = {});

}  // namespace forge::graph
