#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>
#include <thread>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/pivot.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "core/results/tables/turns.h"
#include "core/run/queue/hosts.h"

namespace forge::app {
namespace {

struct CompareOptions {
  std::string table;
  std::string format = "text";
  std::string rows, columns, metric;  ///< of a table made from these options alone
  std::string pareto;                 ///< two metrics with a comma between, ""
  std::string against;                ///< "published" or ""
  bool json = false;
  bool strict = false;
  bool points = false;
  bool curves = false;
  bool watch = false;
  TableOptions tables;
};

/// Table width when the output is not a terminal.
constexpr int unknown_width = 120;
constexpr auto refresh_interval = std::chrono::seconds(2);

int width() { return is_terminal(STDOUT_FILENO) ? terminal_width() : unknown_width; }

tables::TerminalOptions terminal_options() {
  tables::TerminalOptions options;
  options.colour = use_colour();
  options.width = width();
  return options;
}

/// Throws Error for options of declared tables.
void require_pivot_options(const CompareOptions& options) {
  const std::pair<const char*, bool> of_declared_tables[] = {
      {"--table", !options.table.empty()},
      {"--by", !options.tables.by.empty()},
      {"--published", options.tables.published},
      {"--pareto", !options.pareto.empty()},
      {"--points", options.points},
      {"--curves", options.curves},
      {"--watch", options.watch}};
  for (const auto& [name, is_given] : of_declared_tables) {
    if (is_given)
      throw Error(std::string(name) +
                      " belongs to declared tables: --rows, --cols and --metric make "
                      "a table of their own",
                  "leave out one or the other");
  }
}

/// Leaves out the runs of other profiles.
void keep_profile(const std::string& profile, RunsForTables& runs) {
  std::set<std::string> known;
  for (const store::ConfiguredRun& run : runs.shown) known.insert(run.summary.profile);
  if (known.count(profile) == 0)
    throw Error(
        "no run has profile '" + profile + "'",
        "the runs have " + join(std::vector<std::string>(known.begin(), known.end()), ", "));
  const auto others =
      std::stable_partition(runs.shown.begin(), runs.shown.end(), [&](const auto& run) {
        return run.summary.profile == profile;
      });
  std::move(others, runs.shown.end(), std::back_inserter(runs.filtered_out));
  runs.shown.erase(others, runs.shown.end());
}

int print_pivot(const Context& context, const CompareOptions& options) {
  require_pivot_options(options);
  tables::PivotOptions wanted = {options.rows.empty() ? "config" : options.rows,
                                 options.columns,
                                 options.metric.empty() ? "eval_loss" : options.metric,
                                 options.tables.where};
  RunsForTables runs = runs_for_tables(context, context.project(), options.tables);
  if (const std::string& profile = options.tables.profile; !profile.empty()) {
    keep_profile(profile, runs);
    wanted.filter.push_back("profile=" + profile);
  }
  const tables::Pivot pivot = tables::build_pivot(runs.shown, wanted, runs.filtered_out);
  if (options.json || options.format == "json") {
    print_json(tables::to_json(pivot));
  } else if (options.format == "csv") {
    std::cout << tables::to_csv(pivot);
    for (const std::string& line : tables::remarks(pivot))
      std::cerr << tables::printable(line) << "\n";
  } else {
    const tables::Sheet sheet = make_sheet(pivot);
    std::cout << (options.format == "markdown" ? tables::to_markdown(sheet)
                                               : tables::to_terminal(sheet, terminal_options()));
  }
  if (!options.strict) return 0;
  for (const std::string& difference : pivot.differ_between_cells)
    std::cerr << "not controlled: cells differ in " << tables::printable(difference) << "\n";
  return pivot.differ_between_cells.empty() ? 0 : 1;
}

/// The two metrics of --pareto.
std::pair<std::string, std::string> pareto_metrics(const tables::TableSpec& table,
                                                   const std::string& words) {
  const std::vector<std::string> names = split(words, ',');
  if (names.size() != 2)
    throw Error("--pareto needs two metrics", "for example --pareto quality,speed");
  return {tables::metric_by_word(table, names[0]), tables::metric_by_word(table, names[1])};
}

/// What is to be said of the order in which runs made the timings among the two; "" for nothing.
std::string pareto_remark(const tables::Ablation& table,
                          const std::string& first,
                          const std::string& second) {
  if (!is_timed_by_runs(first, table.table) && !is_timed_by_runs(second, table.table)) return "";
  std::vector<const tables::AblationRow*> rows;
  for (const tables::AblationRow& row : table.rows)
    if (row.is_comparable()) rows.push_back(&row);
  return tables::turns_text("speeds", tables::turns_of(rows, table.busy));
}

std::string pareto_text(const tables::Ablation& table, const std::string& words) {
  const auto [first, second] = pareto_metrics(table.table, words);
  std::vector<std::vector<std::string>> lines = {{"Model", first, second, "Dominated by"}};
  const tables::ParetoFront front = tables::pareto(table, first, second);
  for (const tables::ParetoPoint& point : front.points)
    lines.push_back({point.name,
                     results::text(point.first, results::metric_named(first)),
                     results::text(point.second, results::metric_named(second)),
                     point.dominated_by.empty() ? "none" : join(point.dominated_by, ", ")});
  std::string text = aligned(lines, {1, 2});
  if (!front.missing.empty())
    text += tables::printable("Not shown: " + join(front.missing, ", ")) + "\n";
  const std::string remark = pareto_remark(table, first, second);
  if (!remark.empty()) text += "Note: " + remark + "\n";
  return text;
}

void add_pareto(const tables::Ablation& table,
                const std::string& words,
                nlohmann::ordered_json& json) {
  const auto [first, second] = pareto_metrics(table.table, words);
  const tables::ParetoFront front = tables::pareto(table, first, second);
  json["pareto"] = nlohmann::ordered_json::array();
  for (const tables::ParetoPoint& point : front.points)
    json["pareto"].push_back({{"config", point.config},
                              {first, point.first},
                              {second, point.second},
                              {"dominated_by", point.dominated_by}});
  json["pareto_missing"] = front.missing;
  json["pareto_remark"] = pareto_remark(table, first, second);
}

nlohmann::ordered_json table_json(const tables::Ablation& table, const CompareOptions& options) {
  nlohmann::ordered_json json = tables::to_json(table);
  if (!options.pareto.empty()) add_pareto(table, options.pareto, json);
  return json;
}

/// Lines as a block of code in Markdown.
std::string indented(const std::string& lines) {
  std::string text;
  for (const std::string_view line : split(std::string(trim(lines)), '\n'))
    text += "    " + std::string(line) + "\n";
  return text;
}

std::string table_text(const Context& context,
                       const tables::Ablation& table,
                       const CompareOptions& options) {
  if (options.format == "csv") return tables::to_csv(table);
  tables::TerminalOptions terminal = terminal_options();
  terminal.points = options.points;
  const bool is_markdown = options.format == "markdown";
  std::string text =
      is_markdown ? tables::to_markdown(table) : tables::to_terminal(table, terminal);
  const auto add = [&](const std::string& lines) {
    text += "\n" + (is_markdown ? indented(lines) : lines);
  };
  if (!options.pareto.empty()) add(pareto_text(table, options.pareto));
  if (options.curves)
    add("Training loss by tokens\n" +
        tables::plot(training_curves(context, table),
                     {std::min(width(), 100), 16, use_colour() && !is_markdown, "tokens"}));
  return text;
}

void print(const Context& context,
           const std::vector<tables::Ablation>& tables,
           const CompareOptions& options) {
  if (options.json || options.format == "json") {
    const auto list =
        json_list(tables, [&](const auto& table) { return table_json(table, options); });
    print_json(options.table.empty() ? list : list.at(0));
    return;
  }
  for (size_t i = 0; i < tables.size(); ++i)
    std::cout << (i > 0 ? "\n" : "") << table_text(context, tables[i], options);
  std::cout << std::flush;
}

bool is_running(const tables::Ablation& table) {
  return std::any_of(table.rows.begin(), table.rows.end(), [](const tables::AblationRow& row) {
    return row.run &&
           (row.run->status == run::RunState::running || row.run->status == run::RunState::queued);
  });
}

/// A line for each row that is not a controlled comparison.
std::vector<std::string> uncontrolled_rows(const std::vector<tables::Ablation>& tables) {
  std::vector<std::string> lines;
  for (const tables::Ablation& table : tables) {
    for (const tables::AblationRow& row : table.rows) {
      for (const std::vector<std::string>& reasons : {row.violations, row.differs_from_config})
        if (!reasons.empty())
          lines.push_back(table.table.name + ", " + row.spec.config + ": " + join(reasons, "; "));
    }
  }
  return lines;
}

int compare(const Context& context, CompareOptions options) {
  if (options.json && options.format != "text" && options.format != "json")
    throw Error("--json and --format " + options.format + " cannot be used together",
                "leave out one of them");
  if (!options.against.empty()) options.tables.published = true;
  if (!options.rows.empty() || !options.columns.empty() || !options.metric.empty())
    return print_pivot(context, options);
  const project::Project project = context.project();
  const std::vector<std::string> names = chosen_tables(project, options.table);
  std::vector<tables::Ablation> tables = build_tables(context, project, names, options.tables);
  if (options.watch) {
    const Interrupts interrupts;
    while (interrupts.count() == 0 && std::any_of(tables.begin(), tables.end(), is_running)) {
      clear_screen();
      print(context, tables, options);
      std::cerr << unserved_text(queue::unserved_run(context.runs_dir()));
      std::this_thread::sleep_for(refresh_interval);
      tables = build_tables(context, project, names, options.tables);
    }
    clear_screen();
  }
  print(context, tables, options);
  if (!options.strict) return 0;
  const std::vector<std::string> lines = uncontrolled_rows(tables);
  for (const std::string& line : lines) std::cerr << "not controlled: " << line << "\n";
  return lines.empty() ? 0 : 1;
}

}  // namespace

void add_compare(const Command& app) {
  const auto [command, options] =
      app.add_command("compare", "Print tables from available runs", compare);
  command
      .details(
          "A cell shows the mean over seeds with half of its 95 % confidence interval. Differences "
          "that are not significant are marked as ties (≈); the best significant result is bold. A "
          "row that breaks the controlled comparison says what else differs. Runs that are not "
          "comparable are excluded, with the reason.\n"
          "\n"
          "A project declares a table in tables/NAME.yaml: rows, columns, what must be equal, and "
          "claims. docs/TABLES.md describes it. --rows, --cols and --metric make a table that is "
          "not declared.")
      .examples(
          "forge compare --table positions\n"
          "forge compare --table positional --published\n"
          "forge compare --table positions --profile full --format csv\n"
          "forge compare --table positions --by backend\n"
          "forge compare --table positions --where \"revision!=\" --strict\n"
          "forge compare --table positions --pareto quality,speed --curves\n"
          "forge compare --rows model.canon.set --cols model.attention.position.kind --metric "
          "eval_loss")
      .see_also("forge runs, forge export, forge report");
  command.heading("Table");
  command.add_option("-t,--table", options.table, "Table of the project [default: all]");
  command.add_option("--rows <KEY>", options.rows, "Undeclared table: key of the rows");
  command.add_option("--cols <KEY>", options.columns, "Undeclared table: key of the columns");
  command.add_option(
      "--metric", options.metric, "Undeclared table: metric of the cells [default: eval_loss]");
  command.add_option(
      "--by <KEY>", options.tables.by, "Split each row by a config key, or by 'backend'");
  command.heading("Runs");
  add_table_options(command, options.tables);
  command
      .add_option("--where <CONDITION>",
                  options.tables.where,
                  "Use only runs that meet COLUMN=VALUE or KEY=VALUE (also !=, <, <=, >, >=)")
      .repeated();
  command.heading("Options");
  command.add_option("--pareto <A,B>",
                     options.pareto,
                     "Add the Pareto front of two metrics: quality, speed, memory, or their names");
  command.add_flag("--points", options.points, "Best-of tables: list the runs of every row");
  command.add_flag("--curves", options.curves, "Plot training loss in the terminal");
  command.add_flag("--watch", options.watch, "Refresh every two seconds until no run is active");
  command.add_flag("--strict", options.strict, "Exit with 1 when a comparison is not controlled");
  command.add_option("--against", options.against, "Same as --published")
      .one_of({"published"})
      .hidden();
  command.add_option("--format", options.format, "Output format")
      .one_of({"text", "markdown", "csv", "json"})
      .show_default();
  add_json_option(command, options.json, "Same as --format json");
}

}  // namespace forge::app
