#include "core/project/document.h"

#include "core/graph/read.h"
#include "core/yaml/parse.h"

namespace forge::project {

yaml::NodePtr parse_rendered(const templating::RenderedText& rendered) {
  return yaml::parse(rendered.text,
                     [&](int line, int column) { return rendered.origin(line, column); });
}

graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const templating::Surroundings& surroundings,
                        const templating::Variables& variables) {
  return graph::read_graph(parse_rendered(render_config(project, config, surroundings, variables)));
}

}  // namespace forge::project
