#pragma once

#include <string>

#include "core/yaml/graph/read.h"
#include "core/yaml/yaml.h"
#include "tests/support/support.h"

namespace forge::tests {

inline graph::Graph graph_of(const std::string& text) {
  auto source = std::make_shared<SourceText>();
  source->name = "config.yaml";
  source->text = text;
  return graph::read_graph(yaml::parse(
      text, [source](int line, int column) { return make_span(source, line, column); }));
}

inline std::string graph_error(const std::string& text) {
  return error_of([&] { graph_of(text); });
}

}  // namespace forge::tests
