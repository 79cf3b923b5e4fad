#pragma once

#include "core/graph/node.h"
#include "core/project/project.h"
#include "core/yaml/node.h"

namespace forge::project {

/// Parses a rendered text; every node knows the template that wrote it. Throws Error.
yaml::NodePtr parse_rendered(const templating::RenderedText& rendered);

/// Renders a config and reads it as a graph. Throws Error with the place in the template.
graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const templating::Surroundings& surroundings,
                        const templating::Variables& variables = {});

}  // namespace forge::project
