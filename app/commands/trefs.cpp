#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/inspect/template_tree.h"

namespace forge::app {
namespace {

struct TrefsOptions {
  std::string config;
  std::string format = "tree";
  OutputOptions output;
};

std::string in_format(const std::vector<inspect::TreeTemplate>& tree, const std::string& format) {
  if (format == "files") return tree_as_files(tree);
  if (format == "md") return tree_as_markdown(tree);
  if (format == "dot") return tree_as_dot(tree);
  return tree_as_text(tree);
}

int print_templates(const Context& context, const TrefsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const templating::RenderedText rendered = project::render_config(
      chosen.project, chosen.config, context.surroundings(), chosen.variables);
  const auto tree = inspect::template_tree(rendered.templates, context.here());
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

}  // namespace forge::app
