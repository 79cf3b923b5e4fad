#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/error.h"
#include "core/inspect/project_page.h"
#include "core/inspect/template_list.h"

namespace forge::app {
namespace {

struct ProjectPagesOptions {
  std::string format = "files";
  OutputOptions output;
};

int print_meta(const Context& context, const ProjectPagesOptions& options) {
  const inspect::MetaPage page =
      inspect::meta_page(context.project(), context.workspace(), context.surroundings());
  if (options.output.json) {
    hand_over(to_json(page), options.output);
  } else {
    hand_over(to_markdown(page, context.here()), options.output);
  }
  return 0;
}

int print_index(const Context& context, const ProjectPagesOptions& options) {
  const inspect::IndexPage page =
      inspect::index_page(context.project(), context.workspace(), context.surroundings());
  if (options.output.json) {
    hand_over(to_json(page), options.output);
  } else {
    hand_over(to_markdown(page, context.here()), options.output);
  }
  return static_cast<int>(page.is_sound() ? ExitCode::done : ExitCode::usage);
}

int print_templates(const Context& context, const ProjectPagesOptions& options) {
  const auto templates = inspect::list_templates(context.project().search_path);
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
