#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/graph/write_dot.h"
#include "core/graph/write_json.h"
#include "core/graph/write_yaml.h"
#include "core/project/config_graph.h"

namespace forge::app {
namespace {

struct GraphOptions {
  std::string config;
  std::string format = "yaml";
  std::string target;
  OutputOptions output;
};

graph::Graph load(const Context& context, const ChosenConfig& chosen) {
  return project::load_graph(
      chosen.project, chosen.config, context.surroundings(), chosen.variables);
}

int print_graph(const Context& context, const GraphOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  graph::Graph graph = load(context, chosen);
  if (!options.target.empty()) graph = graph.only(options.target);
  if (options.output.json || options.format == "json") {
    hand_over(to_json(graph), options.output);
  } else if (options.format == "dot") {
    hand_over(write_dot(graph, chosen.config.name), options.output);
  } else {
    hand_over(write_yaml(graph), options.output);
  }
  return 0;
}

int print_targets(const Context& context, const GraphOptions& options) {
  const graph::Graph graph = load(context, context.config(options.config));
  std::string names;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (graph.has_targets()) {
    for (const graph::Entry& target : graph.root->entries) {
      names += target.key + "\n";
      list.push_back({{"name", target.key},
                      {"is", describe_kind(*target.value)},
                      {"at", target.key_origin.describe()}});
    }
  }
  if (options.output.json) {
    hand_over(list, options.output);
  } else {
    hand_over(names, options.output);
  }
  return 0;
}

}  // namespace

void add_graph(const Command& app, Program& program) {
  auto options = std::make_shared<GraphOptions>();
  const Command command = app.add_subcommand(
      "graph", "Print what a config describes as a graph of nodes, in one canonical form");
  command.footer(
      "Examples:\n"
      "  forge graph train_canon_ac\n"
      "  forge graph train_canon_ac --target model --format json\n"
      "  forge graph train_canon_ac --format dot | dot -Tsvg > graph.svg");
  add_config_options(command, program, options->config);
  command.add_option("--format", options->format, "yaml, json, or dot for Graphviz")
      .one_of({"yaml", "json", "dot"})
      .capture_default();
  command.add_option("--target", options->target, "Only this target and what it refers to")
      .type_name("NAME");
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_graph(c, *options); };
  });
}

void add_targets(const Command& app, Program& program) {
  auto options = std::make_shared<GraphOptions>();
  const Command command =
      app.add_subcommand("targets", "List a config's targets: the keys of its document");
  command.footer(
      "Examples:\n"
      "  forge targets train_canon_ac\n"
      "  forge -p examples/tiny targets 4M --json");
  add_config_options(command, program, options->config);
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_targets(c, *options); };
  });
}

}  // namespace forge::app
