#include "core/project/config_graph.h"

#include "core/graph/read.h"

namespace forge::project {

graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const templating::Surroundings& surroundings,
                        const templating::Variables& variables) {
  return graph::read_graph(
      parse_rendered(project, render_config(project, config, surroundings, variables)));
}

}  // namespace forge::project
