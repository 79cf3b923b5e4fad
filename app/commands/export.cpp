#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/run_choice.h"
#include "app/tables.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/output_file.h"
#include "core/base/text.h"
#include "core/report/latex.h"
#include "core/report/machine_formats.h"
#include "core/report/page/collect.h"
#include "core/report/run_metrics.h"
#include "core/report/tensorboard.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

struct ExportOptions {
  std::string format;
  std::string output;  ///< "" or "-": standard output
  std::string table;
  bool json = false;
  TableOptions tables;
  RunChoice runs;

  bool to_standard_output() const { return output.empty() || output == "-"; }
};

/// What was written, for the last line or --json.
struct WrittenFiles {
  std::vector<std::string> files;
  size_t runs = 0;
  size_t metrics = 0;
};

bool is_of_runs(const std::string& format) {
  return format == "tensorboard" || format == "metrics-csv";
}

void write_text(const ExportOptions& options, const std::string& text, WrittenFiles& written) {
  if (options.to_standard_output()) {
    std::cout << text;
    return;
  }
  write_output_file(options.output, text);
  written.files.push_back(options.output);
}

/// A CSV file holds one table; several become files of a folder.
void write_csv(const ExportOptions& options,
               const std::vector<report::Ablation>& tables,
               WrittenFiles& written) {
  if (tables.size() == 1) return write_text(options, report::to_csv(tables.front()), written);
  if (options.to_standard_output()) {
    std::vector<std::string> names;
    for (const report::Ablation& table : tables) names.push_back(table.table.name);
    throw Error("a CSV file holds one table, the project has " + std::to_string(names.size()),
                {},
                "-t chooses one (" + join(names, ", ") + "), -o FOLDER gets a file of each");
  }
  make_directories(options.output);
  for (const report::Ablation& table : tables) {
    const std::string file = (fs::path(options.output) / (table.table.name + ".csv")).string();
    write_file_atomic(file, report::to_csv(table));
    written.files.push_back(file);
  }
}

std::string json_of(const ExportOptions& options, const std::vector<report::Ablation>& tables) {
  if (!options.table.empty()) return json_text(report::to_json(tables.front()), 2) + "\n";
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const report::Ablation& table : tables) list.push_back(report::to_json(table));
  return json_text(list, 2) + "\n";
}

std::string latex_of(const std::vector<report::Ablation>& tables) {
  std::vector<std::string> texts;
  for (const report::Ablation& table : tables) texts.push_back(report::to_latex(table));
  return report::latex_document_part(texts);
}

WrittenFiles export_tables(const Context& context, const ExportOptions& options) {
  if (!options.runs.names.empty() || !options.runs.conditions.empty()) {
    throw Error("runs are chosen for the formats tensorboard and metrics-csv",
                {},
                "a table shows the runs that its file asks for; -t chooses the table");
  }
  const project::Project project = context.project();
  std::vector<std::string> names = {options.table};
  if (options.table.empty()) names = table_names(project);
  if (names.empty()) {
    throw Error("project '" + project.path + "' has no tables to export",
                {},
                "tables are files of the project: tables/NAME.yaml");
  }
  const std::vector<report::Ablation> tables =
      build_tables(context, project, names, options.tables);
  WrittenFiles written;
  if (options.format == "csv") write_csv(options, tables, written);
  if (options.format == "html") {
    const report::page::Page page =
        report::page::collect_page(project.path, project.name, tables, context.runs_dir());
    written.runs = page.runs.size();
    write_text(options, report::page::to_html(page), written);
  }
  if (options.format == "json") write_text(options, json_of(options, tables), written);
  if (options.format == "latex") write_text(options, latex_of(tables), written);
  return written;
}

/// The runs that are named, else those of the project that are not archived, sorted by their ids.
std::vector<run::RunFolder> runs_of(const Context& context, const ExportOptions& options) {
  std::vector<run::RunFolder> folders;
  if (!options.runs.names.empty() || !options.runs.conditions.empty()) {
    folders = chosen_runs(context, options.runs);
  } else {
    const fs::path runs_dir = context.runs_dir();
    if (fs::exists(runs_dir)) {
      store::ResultStore store(store::store_path(runs_dir));
      for (const std::string& warning : store.sync(runs_dir).warnings)
        std::cerr << "warning: " << warning << "\n";
      store::RunFilter filter;
      filter.project = context.project().path;
      filter.profile = options.tables.profile;
      filter.archived = options.tables.archived;
      for (const store::RunSummary& run : store.runs(filter))
        folders.emplace_back(runs_dir / run.id);
    }
  }
  std::sort(
      folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
  if (folders.empty())
    throw Error("there are no runs to export", {}, "'forge runs' lists all that there are");
  return folders;
}

/// Hands the runs' metrics over one after the other: those of all at once may not fit in memory.
template <class Take>
void for_each_run(const std::vector<run::RunFolder>& folders, WrittenFiles& written, Take take) {
  for (const run::RunFolder& folder : folders) {
    const report::RunMetrics run = report::read_run_metrics(folder);
    for (const std::string& warning : run.warnings) std::cerr << "warning: " << warning << "\n";
    if (run.metrics.empty()) {
      std::cerr << "note: " << run.run_id << " has reported no figures\n";
      continue;
    }
    take(run);
    ++written.runs;
    written.metrics += run.metrics.size();
  }
}

WrittenFiles export_metrics_csv(const Context& context, const ExportOptions& options) {
  const std::vector<run::RunFolder> folders = runs_of(context, options);
  WrittenFiles written;
  if (options.to_standard_output()) {
    std::cout << report::metrics_csv_header();
    for_each_run(folders, written, [](const report::RunMetrics& run) {
      std::cout << report::to_metrics_csv(run);
    });
    return written;
  }
  OutputFile file(options.output);
  file.write(report::metrics_csv_header());
  for_each_run(folders, written, [&](const report::RunMetrics& run) {
    file.write(report::to_metrics_csv(run));
  });
  file.finish();
  written.files.push_back(options.output);
  return written;
}

WrittenFiles export_tensorboard(const Context& context, const ExportOptions& options) {
  if (options.to_standard_output())
    throw Error("TensorBoard reads a folder", {}, "name one: -o tensorboard");
  WrittenFiles written;
  for_each_run(runs_of(context, options), written, [&](const report::RunMetrics& run) {
    const fs::path folder = fs::path(options.output) / run.run_id;
    make_directories(folder);
    const fs::path file = folder / report::tensorboard_file_name(run);
    write_file_atomic(file, report::to_tensorboard(run));
    written.files.push_back(file.string());
  });
  return written;
}

void say(const ExportOptions& options, const WrittenFiles& written) {
  if (options.json) {
    print_json(nlohmann::ordered_json{{"format", options.format},
                                      {"files", written.files},
                                      {"runs", written.runs},
                                      {"metrics", written.metrics}});
    return;
  }
  if (options.format == "tensorboard") {
    std::cerr << "wrote " << with_thousands(static_cast<long long>(written.metrics))
              << " figures of " << written.runs << " runs below " << options.output << "\n";
    return;
  }
  for (const std::string& file : written.files) std::cerr << "wrote " << file << "\n";
}

int export_results(const Context& context, ExportOptions options) {
  if (options.format.empty() && !options.json)
    throw Error(
        "--format says what to write", {}, "latex, csv, json, html, tensorboard or metrics-csv");
  if (options.json && options.to_standard_output()) {
    if (!options.format.empty() && options.format != "json") {
      throw Error("--json says what was written with -o", {}, "without -o it is --format json");
    }
    options.format = "json";
    export_tables(context, options);
    return 0;
  }
  if (options.format.empty()) options.format = "json";
  if (is_of_runs(options.format) && !options.table.empty()) {
    throw Error("-t chooses a table for the formats latex, csv, json and html",
                {},
                "runs are chosen by their names and --where");
  }
  const WrittenFiles written =
      options.format == "tensorboard"   ? export_tensorboard(context, options)
      : options.format == "metrics-csv" ? export_metrics_csv(context, options)
                                        : export_tables(context, options);
  say(options, written);
  return 0;
}

}  // namespace

void add_export(const Command& app, Program& program) {
  auto options = std::make_shared<ExportOptions>();
  const Command command =
      app.add_subcommand("export", "Write tables or the runs' figures for other programs");
  command.footer(
      "Formats:\n"
      "  latex        all tables of the project (or that of -t), for \\input in a paper\n"
      "  csv          figures of one table in full; of several into the folder of -o\n"
      "  json         figures of the tables in full, with setup, claims and what was left out\n"
      "  html         the page of 'forge report', with curves and configs of all runs\n"
      "  tensorboard  event files, one folder a run below the folder of -o\n"
      "  metrics-csv  every figure of every step on a line of its own, for W&B, MLflow, pandas\n"
      "\n"
      "Examples:\n"
      "  forge export --format latex -o tables.tex\n"
      "  forge export --format csv -t positions\n"
      "  forge export --format tensorboard -o tensorboard     # tensorboard --logdir tensorboard\n"
      "  forge export --format metrics-csv --where config=train_canon_ac -o metrics.csv\n"
      "\n"
      "Without RUN and --where the last two take all runs of the project. The same runs give the\n"
      "same bytes, whenever and wherever they are written.");
  add_run_choice(command, options->runs);
  command
      .add_option("--format", options->format, "latex, csv, json, html, tensorboard or metrics-csv")
      .one_of({"latex", "csv", "json", "html", "tensorboard", "metrics-csv"});
  command.add_option("-o,--output", options->output, "File or folder to write; none or - prints")
      .type_name("PATH");
  command.add_option("-t,--table", options->table, "Name of a table; none: all of the project");
  add_project_option(command, program);
  command.add_option("--profile",
                     options->tables.profile,
                     "Runs of this profile; for a table else the one that fills most rows");
  command.add_flag("--archived", options->tables.archived, "Archived runs count, too");
  command.add_flag("--published", options->tables.published, "Published figures beside ours");
  command.add_flag(
      "--json", options->json, "Say what was written as JSON; without -o: --format json");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return export_results(c, *options); };
  });
}

}  // namespace forge::app
