#pragma once

#include <string>

#include "core/graph/node.h"

namespace forge::graph {

/// The graph as YAML in one canonical form: four blanks of indentation, block style, strings in
/// double quotes where plain text could be taken for anything else. What several nodes refer to
/// stands once at the top as `.NAME: &NAME …`; under a root that is no mapping of targets, where
/// it is met first. Reading the text gives the same graph.
std::string write_yaml(const Graph& graph);

/// A string or other scalar as one line of YAML that reads as the same in YAML 1.1 and 1.2.
std::string yaml_scalar(const Node& scalar);

}  // namespace forge::graph
