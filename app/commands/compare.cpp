#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "app/commands.h"
#include "app/interrupt.h"
#include "app/output.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/report/figures.h"
#include "core/report/machine_formats.h"
#include "core/report/markdown.h"
#include "core/report/pareto.h"
#include "core/report/pivot.h"
#include "core/report/plot.h"
#include "core/report/terminal.h"

namespace forge::app {
namespace {

struct CompareOptions {
  std::string table;
  std::string format = "text";
  std::string rows, columns, metric;  ///< of a table that nobody declared
  std::string pareto;                 ///< two figures with a comma between, ""
  std::string against;                ///< "published" or ""
  bool json = false;
  bool strict = false;
  bool points = false;
  bool curves = false;
  bool watch = false;
  TableOptions tables;
};

/// Widest line that a table is laid out for where no terminal says how wide it is.
constexpr int unknown_width = 120;
constexpr auto look_again = std::chrono::seconds(2);

int width() { return is_terminal(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : unknown_width; }

report::TerminalOptions terminal_options() {
  report::TerminalOptions options;
  options.colour = use_colour(STDOUT_FILENO);
  options.width = width();
  return options;
}

std::string formatted(const report::Ablation& table, const std::string& format, bool points) {
  if (format == "markdown") return report::to_markdown(table);
  if (format == "csv") return report::to_csv(table);
  if (format == "json") return json_text(report::to_json(table), 2) + "\n";
  report::TerminalOptions terminal = terminal_options();
  terminal.points = points;
  return report::to_terminal(table, terminal);
}

int print_pivot(const Context& context, const CompareOptions& options) {
  const report::PivotOptions wanted = {options.rows.empty() ? "config" : options.rows,
                                       options.columns,
                                       options.metric.empty() ? "eval_loss" : options.metric};
  const report::Pivot pivot =
      report::build_pivot(runs_for_tables(context, context.project(), options.tables), wanted);
  if (options.json || options.format == "json") {
    print_json(report::to_json(pivot));
    return 0;
  }
  const report::Sheet sheet = make_sheet(pivot);
  std::cout << sheet.title << "\n\n"
            << (options.format == "markdown" ? report::markdown_table(sheet)
                                             : report::table_lines(sheet, terminal_options()));
  if (!sheet.footnotes.empty()) std::cout << "\n";
  for (const std::string& note : sheet.footnotes) std::cout << note << "\n";
  return 0;
}

/// The two figures of --pareto.
std::pair<std::string, std::string> pareto_figures(const report::TableSpec& table,
                                                   const std::string& words) {
  const std::vector<std::string> names = split(words, ',');
  if (names.size() != 2)
    throw Error("--pareto takes two figures", {}, "--pareto quality,speed", ExitCode::usage);
  return {report::figure_named(table, names[0]), report::figure_named(table, names[1])};
}

std::string pareto_text(const report::Ablation& table, const std::string& words) {
  const auto [first, second] = pareto_figures(table.table, words);
  std::vector<std::vector<std::string>> lines = {{"Model", first, second, "Dominated by"}};
  for (const report::ParetoPoint& point : report::pareto(table, first, second))
    lines.push_back({point.name,
                     report::figure_text(point.first, first),
                     report::figure_text(point.second, second),
                     point.dominated_by.empty() ? "none" : join(point.dominated_by, ", ")});
  return aligned(lines, {1, 2});
}

nlohmann::ordered_json pareto_json(const report::Ablation& table, const std::string& words) {
  const auto [first, second] = pareto_figures(table.table, words);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const report::ParetoPoint& point : report::pareto(table, first, second))
    list.push_back({{"config", point.config},
                    {first, point.first},
                    {second, point.second},
                    {"dominated_by", point.dominated_by}});
  return list;
}

nlohmann::ordered_json json_of(const report::Ablation& table, const CompareOptions& options) {
  nlohmann::ordered_json json = report::to_json(table);
  if (!options.pareto.empty()) json["pareto"] = pareto_json(table, options.pareto);
  return json;
}

std::string text_of(const Context& context,
                    const report::Ablation& table,
                    const CompareOptions& options) {
  std::string text = formatted(table, options.format, options.points);
  if (options.format == "csv") return text;
  if (!options.pareto.empty()) text += "\n" + pareto_text(table, options.pareto);
  if (options.curves)
    text += "\nTraining loss by tokens\n" +
            report::plot(training_curves(context, table),
                         {std::min(width(), 100), 16, use_colour(STDOUT_FILENO), "tokens"});
  return text;
}

void print(const Context& context,
           const std::vector<report::Ablation>& tables,
           const CompareOptions& options) {
  if (options.json || options.format == "json") {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const report::Ablation& table : tables) list.push_back(json_of(table, options));
    print_json(options.table.empty() ? list : list.at(0));
    return;
  }
  for (size_t i = 0; i < tables.size(); ++i)
    std::cout << (i > 0 ? "\n" : "") << text_of(context, tables[i], options);
  std::cout << std::flush;
}

bool is_going_on(const report::Ablation& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const report::AblationRow& row) {
    return row.run &&
           (row.run->status == run::RunState::running || row.run->status == run::RunState::queued);
  });
}

/// What --strict refuses, in lines.
std::vector<std::string> broken(const std::vector<report::Ablation>& tables) {
  std::vector<std::string> lines;
  for (const report::Ablation& table : tables) {
    for (const report::AblationRow& row : table.rows) {
      if (!row.is_controlled())
        lines.push_back(table.table.name + ", " + row.spec.config + ": " + join(row.breaks, "; "));
    }
  }
  return lines;
}

int compare(const Context& context, const CompareOptions& options) {
  if (!options.rows.empty() || !options.columns.empty() || !options.metric.empty())
    return print_pivot(context, options);
  const project::Project project = context.project();
  std::vector<std::string> names = {options.table};
  if (options.table.empty()) names = table_names(project);
  if (names.empty()) {
    throw Error("project '" + project.path + "' has no tables",
                {},
                "tables are files of the project: tables/NAME.yaml");
  }
  std::vector<report::Ablation> tables = build_tables(context, project, names, options.tables);
  if (options.watch) {
    const Interrupts interrupts;
    while (interrupts.count() == 0 && std::any_of(tables.begin(), tables.end(), is_going_on)) {
      if (is_terminal(STDOUT_FILENO)) std::cout << "\033[H\033[J";
      print(context, tables, options);
      std::this_thread::sleep_for(look_again);
      tables = build_tables(context, project, names, options.tables);
    }
    if (is_terminal(STDOUT_FILENO)) std::cout << "\033[H\033[J";
  }
  print(context, tables, options);
  if (!options.strict) return 0;
  const std::vector<std::string> lines = broken(tables);
  for (const std::string& line : lines) std::cerr << "not controlled: " << line << "\n";
  return lines.empty() ? 0 : 1;
}

}  // namespace

void add_compare(const Command& app, Program& program) {
  auto options = std::make_shared<CompareOptions>();
  const Command command =
      app.add_subcommand("compare", "Print the project's tables from the runs that there are");
  command.footer(
      "Examples:\n"
      "  forge compare --table positions\n"
      "  forge compare --table positional --published\n"
      "  forge compare --table positions --profile full --format csv\n"
      "  forge compare --table positions --by backend\n"
      "  forge compare --table positions --where \"seed<44\" --strict\n"
      "  forge compare --table positions --pareto quality,speed --curves\n"
      "  forge compare --table positions --watch              until nothing of it runs\n"
      "  forge compare --rows model.canon.set --cols model.position.kind --metric eval_loss\n"
      "\n"
      "Runs that differ in nothing but the seed are a sample: their mean stands in the table with "
      "half\n"
      "of its 95 % interval, a difference that is noise is a tie (\u2248), the best is bold where "
      "it stands.\n"
      "A row that breaks the comparison says in what; with --strict that is exit code 1.\n"
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
  command
      .add_option("--where",
                  options->tables.where,
                  "COLUMN=VALUE or KEY=VALUE that runs must meet; may be repeated: all must hold")
      .type_name("CONDITION")
      .repeated();
  command.add_option("--rows", options->rows, "Instead of a declared table: rows by this key")
      .type_name("KEY");
  command.add_option("--cols", options->columns, "And columns by this one").type_name("KEY");
  command.add_option("--metric", options->metric, "The figure of such a table; default: eval_loss")
      .type_name("FIGURE");
  command
      .add_option("--pareto",
                  options->pareto,
                  "Who is dominated in two figures: quality, speed, memory, or their names")
      .type_name("A,B");
  command.add_flag(
      "--points", options->points, "Of a table of best values: all that each row was chosen from");
  command.add_flag("--curves", options->curves, "Training losses as a plot of letters");
  command.add_flag("--watch", options->watch, "Look again every two seconds while runs go on");
  command.add_flag(
      "--strict", options->strict, "Exit code 1 where a row breaks the controlled comparison");
  command.add_option("--against", options->against, "published: the same as --published")
      .one_of({"published"})
      .type_name("WHAT");
  command.add_flag("--archived", options->tables.archived, "Archived runs count, too");
  command.add_flag("--published", options->tables.published, "Published figures beside ours");
  command.add_option("--format", options->format, "text, markdown, csv or json")
      .one_of({"text", "markdown", "csv", "json"})
      .capture_default();
  command.add_flag("--json", options->json, "The same as --format json");
  command.callback([&program, options] {
    if (!options->against.empty()) options->tables.published = true;
    program.action = [options](const Context& c) { return compare(c, *options); };
  });
}

}  // namespace forge::app
