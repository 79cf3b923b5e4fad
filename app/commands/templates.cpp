#include <unistd.h>
#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/project/origins.h"
#include "core/project/project.h"
#include "core/project/project_page.h"
#include "core/project/templates.h"
#include "core/yaml/graph/write.h"

namespace forge::app {
namespace {

struct PpOptions {
  std::string config;
  bool annotate = false;
  OutputOptions output;
};

/// The lines with their origins as comments in one column; a line that is too long pushes its own.
std::string annotated(const std::vector<project::AnnotatedLine>& lines, bool colour) {
  constexpr int widest = 72;
  int width = 0;
  for (const project::AnnotatedLine& line : lines) {
    width = std::max(width, std::min(widest, tables::display_width(line.text)));
  }
  std::string text;
  for (const project::AnnotatedLine& line : lines) {
    text += line.text;
    if (!line.place.empty()) {
      text += tables::pad_left("", std::max(0, width - tables::display_width(line.text)));
      text += "  " + styled("# " + line.place, Style::dim, colour);
    }
    text += "\n";
  }
  return text;
}

int print_text(const Context& context, const PpOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const jinja::RenderedText rendered = project::render_config(
      chosen.project, chosen.config, context.host_environment(), chosen.variables);
  if (options.output.json) {
    hand_over(nlohmann::ordered_json{{"project", chosen.project.path},
                                     {"config", chosen.config.name},
                                     {"lines", project::lines_to_json(rendered)}},
              options.output);
  } else if (options.annotate) {
    const bool colour = options.output.file.empty() && use_colour(STDOUT_FILENO);
    hand_over(annotated(project::annotate(rendered, context.here()), colour), options.output);
  } else {
    hand_over(rendered.text + "\n", options.output);
  }
  return 0;
}

}  // namespace

void add_pp(const Command& app, Program& program) {
  auto options = std::make_shared<PpOptions>();
  const Command command = app.add_subcommand("pp", "Print a config's preprocessed YAML text");
  command.footer(
      "Examples:\n"
      "  forge pp train_canon_ac\n"
      "  forge pp train_canon_ac --annotate | less\n"
      "  forge pp train_canon_ac --json | jq -r '.lines[] | .origins[0].file' | sort | uniq -c");
  add_config_options(command, program, options->config);
  command.add_flag(
      "--annotate", options->annotate, "Beside each line the template line that wrote it");
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_text(c, *options); };
  });
}

namespace {

struct TrefsOptions {
  std::string config;
  std::string format = "tree";
  OutputOptions output;
};

std::string in_format(const std::vector<project::TreeTemplate>& tree, const std::string& format) {
  if (format == "files") return tree_as_files(tree);
  if (format == "md") return tree_as_markdown(tree);
  if (format == "dot") return tree_as_dot(tree);
  return tree_as_text(tree);
}

int print_templates(const Context& context, const TrefsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const jinja::RenderedText rendered = project::render_config(
      chosen.project, chosen.config, context.host_environment(), chosen.variables);
  const auto tree = project::template_tree(rendered.templates, context.here());
  if (options.output.json) {
    hand_over(nlohmann::ordered_json{{"project", chosen.project.path},
                                     {"config", chosen.config.name},
                                     {"templates", to_json(tree)}},
              options.output);
  } else {
    hand_over(in_format(tree, options.format), options.output);
  }
  return 0;
}

}  // namespace

void add_trefs(const Command& app, Program& program) {
  auto options = std::make_shared<TrefsOptions>();
  const Command command =
      app.add_subcommand("trefs", "Show the templates that a config reads, and who asks for each");
  command.footer(
      "Examples:\n"
      "  forge trefs train_canon_ac\n"
      "  forge trefs train_canon_ac --format files | sort -u | xargs grep num_layers\n"
      "  forge trefs train_canon_ac --format dot | dot -Tsvg > templates.svg");
  add_config_options(command, program, options->config);
  command.add_option("--format", options->format, "files, tree, md, or dot for Graphviz")
      .one_of({"files", "tree", "md", "dot"})
      .capture_default();
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_templates(c, *options); };
  });
}

namespace {

struct GraphOptions {
  std::string config;
  std::string format = "yaml";
  std::string target;
  OutputOptions output;
};

graph::Graph load(const Context& context, const ChosenConfig& chosen) {
  return project::load_graph(
      chosen.project, chosen.config, context.host_environment(), chosen.variables);
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

namespace {

struct ProjectPagesOptions {
  std::string format = "files";
  OutputOptions output;
};

int print_meta(const Context& context, const ProjectPagesOptions& options) {
  const project::MetaPage page =
      project::meta_page(context.project(), context.workspace(), context.host_environment());
  if (options.output.json) {
    hand_over(to_json(page), options.output);
  } else {
    hand_over(to_markdown(page, context.here()), options.output);
  }
  return 0;
}

int print_index(const Context& context, const ProjectPagesOptions& options) {
  const project::ProjectPage page =
      project::project_page(context.project(), context.workspace(), context.host_environment());
  if (options.output.json) {
    hand_over(to_json(page), options.output);
  } else {
    hand_over(to_markdown(page, context.here()), options.output);
  }
  return static_cast<int>(page.all_configs_valid() ? ExitCode::done : ExitCode::usage);
}

int print_templates(const Context& context, const ProjectPagesOptions& options) {
  const auto templates = project::list_templates(context.project().search_path);
  if (options.output.json) {
    hand_over(to_json(templates), options.output);
  } else if (options.format == "md") {
    hand_over(list_as_markdown(templates, context.here()), options.output);
  } else {
    hand_over(list_as_files(templates, context.here()), options.output);
  }
  return 0;
}

using Print = int (*)(const Context&, const ProjectPagesOptions&);

std::shared_ptr<ProjectPagesOptions> add_page(const Command& command,
                                              Program& program,
                                              Print print) {
  auto options = std::make_shared<ProjectPagesOptions>();
  add_project_option(command, program);
  add_output_options(command, options->output);
  command.callback([&program, options, print] {
    program.action = [options, print](const Context& c) { return print(c, *options); };
  });
  return options;
}

}  // namespace

void add_index(const Command& app, Program& program) {
  const Command command = app.add_subcommand(
      "index", "Print a page on the project in Markdown: what it is, its configs, its templates");
  command.footer(
      "Examples:\n"
      "  forge index\n"
      "  forge index -p canon -o INDEX.md");
  add_page(command, program, print_index);
}

void add_meta(const Command& app, Program& program) {
  const Command command = app.add_subcommand(
      "meta", "Print what the project's meta.yaml says, its templates and the search path");
  command.footer(
      "Examples:\n"
      "  forge meta\n"
      "  forge meta -p canon --json | jq -r '.search_path[].folder'");
  add_page(command, program, print_meta);
}

void add_tlist(const Command& app, Program& program) {
  const Command command =
      app.add_subcommand("tlist", "List all templates on the project's search path");
  command.footer(
      "Examples:\n"
      "  forge tlist\n"
      "  forge tlist --format md      which extends which");
  const std::shared_ptr<ProjectPagesOptions> options = add_page(command, program, print_templates);
  command.add_option("--format", options->format, "files, or md: each below what it extends")
      .one_of({"files", "md"})
      .capture_default();
}

}  // namespace forge::app
