#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/tables.h"
#include "core/base/error.h"
#include "core/base/output_file.h"
#include "core/report/markdown.h"

namespace forge::app {
namespace {

struct ExportMarkdownOptions {
  std::string output = "RESULTS.md";
  TableOptions tables;
};

int export_markdown(const Context& context, const ExportMarkdownOptions& options) {
  const project::Project project = context.project();
  const std::vector<std::string> names = table_names(project);
  if (names.empty()) {
    throw Error("project '" + project.path + "' has no tables to export",
                {},
                "tables are files of the project: tables/NAME.yaml");
  }
  const std::string text =
      report::export_markdown(project.name, build_tables(context, project, names, options.tables));
  if (options.output == "-") {
    std::cout << text;
    return 0;
  }
  write_output_file(options.output, text);
  std::cerr << "wrote " << options.output << "\n";
  return 0;
}

}  // namespace

void add_export_markdown(const Command& app, Program& program) {
  auto options = std::make_shared<ExportMarkdownOptions>();
  const Command command = app.add_subcommand(
      "export-markdown", "Write all tables of the project with their setup as Markdown");
  command.footer("Examples:\n  forge export-markdown\n  forge export-markdown -o - | less");
  command.add_option("-o,--output", options->output, "File to write; - prints").capture_default();
  add_project_option(command, program);
  command.add_option("--profile",
                     options->tables.profile,
                     "Runs of this profile; else the one that fills most rows");
  command.add_flag("--published", options->tables.published, "Published figures beside ours");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return export_markdown(c, *options); };
  });
}

}  // namespace forge::app
