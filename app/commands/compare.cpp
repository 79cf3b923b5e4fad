#include <unistd.h>

#include <iostream>

#include "app/commands.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/report/machine_formats.h"
#include "core/report/markdown.h"
#include "core/report/terminal.h"

namespace forge::app {
namespace {

struct Options {
  std::string table;
  std::string format = "text";
  bool json = false;
  TableOptions tables;
};

/// Widest line that a table is laid out for where no terminal says how wide it is.
constexpr int unknown_width = 120;

std::string formatted(const report::Ablation& table, const std::string& format) {
  if (format == "markdown") return report::to_markdown(table);
  if (format == "csv") return report::to_csv(table);
  if (format == "json") return json_text(report::to_json(table), 2) + "\n";
  report::TerminalOptions options;
  options.colour = use_colour(STDOUT_FILENO);
  options.width = is_terminal(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : unknown_width;
  return report::to_terminal(table, options);
}

int compare(const Context& context, const Options& options) {
  const project::Project project = context.project();
  std::vector<std::string> names = {options.table};
  if (options.table.empty()) names = table_names(project);
  if (names.empty()) {
    throw Error("project '" + project.path + "' has no tables",
                {},
                "tables are files of the project: tables/NAME.yaml");
  }
  const std::vector<report::Ablation> tables =
      build_tables(context, project, names, options.tables);
  const std::string format = options.json ? "json" : options.format;
  if (format == "json" && options.table.empty()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const report::Ablation& table : tables) list.push_back(report::to_json(table));
    std::cout << json_text(list, 2) << "\n";
    return 0;
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    if (i > 0) std::cout << "\n";
    std::cout << formatted(tables[i], format);
  }
  return 0;
}

}  // namespace

void add_compare(const Command& app, Program& program) {
  auto options = std::make_shared<Options>();
  const Command command =
      app.add_subcommand("compare", "Print the project's tables from the runs that there are");
  command.footer(
      "Examples:\n"
      "  forge compare --table positions\n"
      "  forge compare --table positional --published\n"
      "  forge compare --table positions --profile full --format csv\n"
      "  forge compare --table positions --by backend\n"
      "\n"
      "A table is a file of the project, tables/NAME.yaml: its rows, columns (losses, scores of a\n"
      "task, speed, memory), what must be equal, the claims it is to decide, and of which runs a\n"
      "row shows the best. docs/TABLES.md describes it.");
  command.add_option(
      "-t,--table", options->table, "Name of a table of the project; none: all of them");
  add_project_option(command, program);
  command.add_option("--profile",
                     options->tables.profile,
                     "Runs of this profile; else the one that fills most rows");
  command
      .add_option("--by",
                  options->tables.by,
                  "A row for each value of this key: backend, or a key of the config")
      .type_name("KEY");
  command.add_flag("--archived", options->tables.archived, "Archived runs count, too");
  command.add_flag("--published", options->tables.published, "Published figures beside ours");
  command.add_option("--format", options->format, "text, markdown, csv or json")
      .one_of({"text", "markdown", "csv", "json"})
      .capture_default();
  command.add_flag("--json", options->json, "The same as --format json");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return compare(c, *options); };
  });
}

}  // namespace forge::app
