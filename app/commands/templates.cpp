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

/// The lines with their origins as comments in one column; a longer line shifts its own.
std::string annotated(const std::vector<project::AnnotatedLine>& lines, Style style) {
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
      text += "  " + styled(tables::printable("# " + line.place), style);
    }
    text += "\n";
  }
  return text;
}

jinja::RenderedText render(const Context& context, const ChosenConfig& chosen) {
  return project::render_config(
      chosen.project, chosen.config, context.host_environment(), chosen.variables);
}

int print_config_text(const Context& context, const PpOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const jinja::RenderedText rendered = render(context, chosen);
  if (options.output.json)
    return write_output(nlohmann::ordered_json{{"project", chosen.project.path},
                                               {"config", chosen.config.name},
                                               {"lines", project::lines_to_json(rendered)}},
                        options.output);
  const bool is_printed = options.output.file.empty();
  const bool is_shown = is_printed && ::isatty(STDOUT_FILENO) != 0;
  std::string text = rendered.text + "\n";
  if (options.annotate) {
    std::vector<project::AnnotatedLine> lines = project::annotate(rendered, context.here());
    if (is_shown)
      for (project::AnnotatedLine& line : lines) line.text = tables::printable_lines(line.text);
    text = annotated(lines, is_printed ? Style::dim : Style::plain);
    if (is_shown) return write_output(text, options.output);  // its colours are forge's own
  }
  if (!is_printed) return write_output(text, options.output);
  print_bytes(text);
  return 0;
}

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

int print_template_tree(const Context& context, const TrefsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const jinja::RenderedText rendered = render(context, chosen);
  const auto tree = project::template_tree(rendered.templates, context.here());
  if (options.output.json)
    return write_output(nlohmann::ordered_json{{"project", chosen.project.path},
                                               {"config", chosen.config.name},
                                               {"templates", to_json(tree)}},
                        options.output);
  return write_output(in_format(tree, options.format), options.output);
}

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
  if (options.output.json || options.format == "json")
    return write_output(to_json(graph), options.output);
  const bool dot = options.format == "dot";
  return write_output(dot ? write_dot(graph, chosen.config.name) : write_yaml(graph),
                      options.output);
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
  if (options.output.json) return write_output(list, options.output);
  return write_output(names, options.output);
}

struct ProjectPagesOptions {
  std::string format = "files";
  OutputOptions output;
};

int print_meta(const Context& context, const ProjectPagesOptions& options) {
  const project::MetaPage page =
      project::meta_page(context.project(), context.workspace(), context.host_environment());
  if (options.output.json) return write_output(to_json(page), options.output);
  return write_output(to_markdown(page, context.here()), options.output);
}

int print_index(const Context& context, const ProjectPagesOptions& options) {
  const project::ProjectPage page =
      project::project_page(context.project(), context.workspace(), context.host_environment());
  if (options.output.json) {
    write_output(to_json(page), options.output);
  } else {
    write_output(to_markdown(page, context.here()), options.output);
  }
  return static_cast<int>(page.all_configs_valid() ? ExitCode::done : ExitCode::usage);
}

int print_template_list(const Context& context, const ProjectPagesOptions& options) {
  const auto templates = project::list_templates(context.project().search_path);
  if (options.output.json) return write_output(to_json(templates), options.output);
  const auto write = options.format == "md" ? project::list_as_markdown : project::list_as_files;
  return write_output(write(templates, context.here()), options.output);
}

}  // namespace

void add_pp(const Command& app) {
  const auto [command, options] =
      app.add_command("pp", "Print a config's preprocessed YAML", print_config_text);
  command
      .examples(
          "forge pp train_canon_ac\n"
          "forge pp train_canon_ac --annotate | less\n"
          "forge pp train_canon_ac --json | jq -r '.lines[] | .origins[0].file' | sort | uniq -c")
      .see_also("forge trefs, forge show");
  add_config_argument(command, options.config);
  command.add_flag("--annotate", options.annotate, "Show the template line behind each line");
  add_output_options(command, options.output);
}

void add_trefs(const Command& app) {
  const auto [command, options] = app.add_command(
      "trefs", "Show the templates that a config uses, as a tree", print_template_tree);
  command
      .examples(
          "forge trefs train_canon_ac\n"
          "forge trefs train_canon_ac --format files | sort -u | xargs grep num_layers\n"
          "forge trefs train_canon_ac --format dot | dot -Tsvg > templates.svg")
      .see_also("forge tlist, forge pp");
  add_config_argument(command, options.config);
  command.add_option("--format", options.format, "Output format; dot is Graphviz")
      .one_of({"files", "tree", "md", "dot"})
      .show_default();
  add_output_options(command, options.output);
}

void add_graph(const Command& app) {
  const auto [command, options] =
      app.add_command("graph", "Print a config as a graph of nodes", print_graph);
  command
      .examples(
          "forge graph train_canon_ac\n"
          "forge graph train_canon_ac --target model --format json\n"
          "forge graph train_canon_ac --format dot | dot -Tsvg > graph.svg")
      .see_also("forge targets");
  add_config_argument(command, options.config);
  command.add_option("--format", options.format, "Output format; dot is Graphviz")
      .one_of({"yaml", "json", "dot"})
      .show_default();
  command.add_option("--target", options.target, "Print only this target and what it refers to");
  add_output_options(command, options.output);
}

void add_targets(const Command& app) {
  const auto [command, options] = app.add_command(
      "targets", "List a config's targets: the top-level keys of its document", print_targets);
  command
      .examples(
          "forge targets train_canon_ac\n"
          "forge targets 4M --json")
      .see_also("forge graph");
  add_config_argument(command, options.config);
  add_output_options(command, options.output);
}

void add_index(const Command& app) {
  const auto [command, options] =
      app.add_command("index", "Print an overview of the project as Markdown", print_index);
  command.details("The page describes the project, its configs and its templates.")
      .examples("forge index\nforge index -p canon -o INDEX.md")
      .see_also("forge ls, forge meta");
  add_project_option(command);
  add_output_options(command, options.output);
}

void add_meta(const Command& app) {
  const auto [command, options] = app.add_command(
      "meta", "Print the project's meta.yaml, its templates and the search path", print_meta);
  command.examples("forge meta\nforge meta -p canon --json | jq -r '.search_path[].folder'")
      .see_also("forge index, forge tlist");
  add_project_option(command);
  add_output_options(command, options.output);
}

void add_tlist(const Command& app) {
  const auto [command, options] = app.add_command(
      "tlist", "List all templates on the project's search path", print_template_list);
  command.examples("forge tlist\nforge tlist --format md").see_also("forge trefs, forge meta");
  add_project_option(command);
  add_output_options(command, options.output);
  command.add_option("--format", options.format, "Output format; md groups templates by parent")
      .one_of({"files", "md"})
      .show_default();
}

}  // namespace forge::app
