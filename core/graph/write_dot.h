#pragma once

#include <string>

#include "core/graph/node.h"

namespace forge::graph {

/// The graph for Graphviz: a box for every call and shared container, an ellipse for a variable,
/// and an edge for each reference, labelled with the argument that makes it. Plain values are left
/// out.
std::string write_dot(const Graph& graph, const std::string& title);

/// A text as a quoted string of the DOT language.
std::string dot_string(const std::string& text);

}  // namespace forge::graph
