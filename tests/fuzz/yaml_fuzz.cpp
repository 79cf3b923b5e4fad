#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/yaml/graph/read.h"
#include "core/yaml/section_cache.h"
#include "core/yaml/yaml.h"

/// YAML to nodes, and nodes to a graph. Read whole or section by section, a text must come to the
/// same end.
namespace {

struct Outcome {
  forge::yaml::NodePtr root;
  std::string error;
};

template <class Parse>
Outcome outcome_of(Parse parse) {
  try {
    return {parse(), ""};
  } catch (const forge::Error& error) {
    return {nullptr, forge::describe(error)};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const auto source = std::make_shared<forge::SourceText>();
  source->name = "fuzzed";
  source->text.assign(reinterpret_cast<const char*>(data), size);
  const auto origin = [&](int line, int column) { return forge::make_span(source, line, column); };
  const Outcome whole = outcome_of([&] { return forge::yaml::parse(source->text, origin); });
  forge::yaml::SectionCache sections;
  for (int time = 0; time < 2; ++time) {  // as read, and as remembered
    const Outcome parts =
        outcome_of([&] { return forge::yaml::parse(source->text, origin, sections); });
    if (parts.error != whole.error) {
      std::cerr << "whole: " << whole.error << "\nparts: " << parts.error << "\n";
      std::abort();
    }
  }
  if (whole.root) {
    try {
      forge::graph::read_graph(whole.root);
    } catch (const forge::Error&) {
    }
  }
  return 0;
}
