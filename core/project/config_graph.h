#pragma once

#include "core/graph/node.h"
#include "core/project/project.h"

namespace forge::project {

/// Renders a config and reads it as a graph. Throws Error with the place in the template.
graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const templating::Surroundings& surroundings,
                        const templating::Variables& variables = {});

}  // namespace forge::project
