#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/metric_sinks.h"
#include "app/runs.h"
#include "app/stream_metrics.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/own_hash.h"
#include "core/base/text.h"
#include "core/manage/written_files.h"
#include "core/results/page/page.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/run_metrics.h"
#include "core/results/tables/sheet.h"
#include "core/run/annotations.h"
#include "core/run/moved_files.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

const std::vector<std::string> export_formats = {
    "latex", "csv", "json", "html", "tensorboard", "wandb", "metrics-csv"};

struct ExportOptions {
  std::string format;
  std::string output = "-";  ///< "-": standard output
  std::string table;
  bool force = false;
  bool follow = false;
  bool json = false;
  TableOptions tables;
  RunSelector runs;
};

/// What was written, for the last line or --json.
struct WrittenFiles {
  std::vector<std::string> files;
  size_t runs = 0;
  size_t metrics = 0;
};

/// Throws Error where the output would replace a file that a person wrote or edited.
void require_output(const std::string& output, bool force) {
  if (output != "-" && !force)
    manage::require_replaceable(output, "name another file with -o, or give --force");
}

void add_force_flag(const Command& command, bool& force) {
  command.add_flag("--force", force, "Replace a file that forge did not write, or that was edited");
}

/// Returns whether the text was written to a file; "-" prints it.
bool write_text(const std::string& output, const std::string& text) {
  if (output == "-") {
    std::cout << text;
    return false;
  }
  write_output_file(output, text);
  return true;
}

/// A file's text with its own hash in a last line, which is a comment.
std::string with_hash_line(const std::string& text, const char* begin, const char* end) {
  return with_own_hash(text + begin + own_hash_mark() + end + "\n");
}

std::string with_html_hash(const std::string& text) {
  return with_hash_line(text, "<!-- ", " -->");
}

/// All tables as a list, or the one that was asked for; each has the hash of the whole text.
std::string json_document(const std::vector<tables::Ablation>& tables, bool is_list) {
  auto list = json_list(tables, [](const auto& table) { return tables::to_json(table); });
  for (auto& table : list) table["hash"] = own_hash_mark();
  return with_own_hash(tables::printable_json(json_text(is_list ? list : list.front(), 2)) + "\n");
}

page::Page collect_page(const Context& context,
                        const project::Project& project,
                        const std::vector<tables::Ablation>& tables) {
  LateProgress progress("reading curves");
  return page::collect_page(project.path,
                            project.workspace_root,
                            project.name,
                            tables,
                            context.runs_dir(),
                            progress.reporter());
}

/// A CSV file holds one table; several become files of a folder.
WrittenFiles write_csv_files(const ExportOptions& options,
                             const std::vector<tables::Ablation>& tables) {
  if (options.output == "-") {
    const auto names =
        texts_of(tables, [](const tables::Ablation& table) { return table.table.name; });
    throw Error("CSV holds one table, the project has " + std::to_string(names.size()),
                "select one with -t (" + join(names, ", ") + ") or write all with -o FOLDER");
  }
  make_directories(options.output);
  const auto file_of = [&](const tables::Ablation& table) {
    return (fs::path(options.output) / (table.table.name + ".csv")).string();
  };
  for (const tables::Ablation& table : tables) require_output(file_of(table), options.force);
  WrittenFiles written;
  std::set<fs::path> own;
  for (const tables::Ablation& table : tables) {
    const std::string file = file_of(table);
    write_file_atomic(file, tables::to_csv(table));
    written.files.push_back(file);
    own.insert(fs::path(file).filename());
  }
  for (const fs::path& file : folder_entries(options.output))
    if (file.extension() == ".csv" && own.count(file.filename()) == 0)
      std::cerr << "warning: '" << shown_path(file) << "' is of none of these tables, and stays\n";
  return written;
}

WrittenFiles export_tables(const Context& context, const ExportOptions& options) {
  if (!options.runs.empty()) {
    throw Error("RUN and --where apply to the formats tensorboard, wandb and metrics-csv",
                "a table declares its runs; -t selects the table");
  }
  const project::Project project = context.project();
  const std::vector<std::string> names = chosen_tables(project, options.table);
  const std::vector<tables::Ablation> tables =
      build_tables(context, project, names, options.tables);
  if (options.format == "csv" && tables.size() > 1) return write_csv_files(options, tables);
  WrittenFiles written;
  std::string text;
  if (options.format == "csv") {
    text = tables::to_csv(tables.front());
  } else if (options.format == "html") {
    const page::Page page = collect_page(context, project, tables);
    written.runs = page.runs.size();
    text = with_html_hash(page::to_html(page));
  } else if (options.format == "json") {
    text = json_document(tables, options.table.empty());
  } else {
    text = with_hash_line(
        tables::latex_document_part(texts_of(
            tables, [](const tables::Ablation& table) { return tables::to_latex(table); })),
        "% ",
        "");
  }
  if (write_text(options.output, text)) written.files.push_back(options.output);
  return written;
}

using RunsById = std::map<std::string, store::RunSummary>;

/// Those of the filter's runs that --profile and --where choose.
RunsById chosen_runs(const Context& context,
                     store::RunFilter filter,
                     const ExportOptions& options) {
  filter.profile = options.tables.profile;
  filter.archived = true;
  store::RunQuery query;
  query.conditions = options.runs.conditions;
  RunsById chosen;
  for (store::ConfiguredRun& run :
       select_stored(context, stored_runs(context, filter), query, false))
    chosen.emplace(run.summary.id, std::move(run.summary));
  return chosen;
}

/// The runs that are named, and not by a pattern: they may be archived, of any project, and lie in
/// another runs folder.
std::vector<run::RunFolder> named_runs(const Context& context, const ExportOptions& options) {
  std::vector<run::RunFolder> folders;
  std::optional<RunsById> chosen;
  for (const std::string& name : options.runs.names) {
    if (project::is_pattern(name)) continue;
    run::RunFolder folder = context.find_run(name);
    if (!chosen) chosen = chosen_runs(context, {}, options);
    const bool is_here = is_same_path(folder.path().parent_path(), context.runs_dir());
    if (is_here && chosen->count(folder.id()) == 0) {
      print_warnings({"run " + folder.id() + " is left out: --profile and --where choose others"});
    } else {
      folders.push_back(std::move(folder));
    }
  }
  return folders;
}

/// The runs to export, sorted by their ids: those of the project, or those that are named.
std::vector<run::RunFolder> runs_to_export(const Context& context, const ExportOptions& options) {
  std::vector<run::RunFolder> folders = named_runs(context, options);
  std::vector<std::string> patterns = options.runs.names;
  patterns.erase(std::remove_if(patterns.begin(),
                                patterns.end(),
                                [](const auto& name) { return !project::is_pattern(name); }),
                 patterns.end());
  const auto add = [&](const RunsById& runs, const auto& is_wanted) {
    for (const auto& [id, run] : runs)
      if ((run.archived == 0 || options.tables.archived) && is_wanted(id))
        folders.emplace_back(context.runs_dir() / id);
  };
  if (options.runs.names.empty()) {
    const store::RunFilter filter = filter_of(context, context.project());
    add(chosen_runs(context, filter, options), [](const auto&) { return true; });
  } else if (!patterns.empty()) {
    const std::vector<std::string> matching =
        texts_of(selected_runs(context, {patterns, {}}), &run::RunFolder::id);
    const std::set<std::string> matches(matching.begin(), matching.end());
    add(chosen_runs(context, chosen_project(context), options),
        [&](const std::string& id) { return matches.count(id) > 0; });
  }
  const auto comes_before = [](const auto& a, const auto& b) { return a.id() < b.id(); };
  const auto is_same = [](const auto& a, const auto& b) { return a.path() == b.path(); };
  std::sort(folders.begin(), folders.end(), comes_before);
  folders.erase(std::unique(folders.begin(), folders.end(), is_same), folders.end());
  if (folders.empty()) throw Error("no runs to export", "'forge runs' lists all runs");
  return folders;
}

/// Hands text on in large pieces: a call of the system for each metric takes longer than all else.
template <class Write>
class Pieces {
 public:
  explicit Pieces(Write write) : write_(std::move(write)) {}
  void add(const std::string& text) {
    held_ += text;
    if (held_.size() >= size_t{1} << 16) finish();
  }
  void finish() {
    write_(held_);
    held_.clear();
  }

 private:
  Write write_;
  std::string held_;
};

/// Calls take(run, metric) metric by metric: all of a run's may not fit in memory.
template <class Take>
void for_each_metric(const run::RunFolder& folder, WrittenFiles& written, Take take) {
  const tables::MetricSource source(folder);
  print_warnings(source.run().warnings);
  size_t count = 0;
  source.for_each([&](const tables::MetricPoint& metric) {
    take(source.run(), metric);
    ++count;
  });
  if (count == 0) std::cerr << "note: " << source.run().run_id << " has reported no metrics\n";
  written.runs += count > 0;
  written.metrics += count;
}

/// Calls write(folder) for each run.
template <class Write>
void for_each_run(const std::vector<run::RunFolder>& folders, Write write) {
  LateProgress progress("exporting runs");
  for (size_t i = 0; i < folders.size(); ++i) {
    progress(i, folders.size());
    write(folders[i]);
  }
}

template <class Write>
void write_metrics_csv(const std::vector<run::RunFolder>& folders,
                       WrittenFiles& written,
                       Write write) {
  Pieces<Write> text(write);
  text.add(tables::metrics_csv_header());
  for_each_run(folders, [&](const run::RunFolder& folder) {
    for_each_metric(folder, written, [&](const auto& run, const tables::MetricPoint& metric) {
      text.add(tables::metrics_csv_line(run, metric));
    });
  });
  text.finish();
}

WrittenFiles export_metrics_csv(const Context& context, const ExportOptions& options) {
  const std::vector<run::RunFolder> folders = runs_to_export(context, options);
  WrittenFiles written;
  if (options.output == "-") {
    write_metrics_csv(folders, written, [](const std::string& text) { std::cout << text; });
    return written;
  }
  OutputFile file(options.output);
  write_metrics_csv(folders, written, [&](const std::string& text) { file.write(text); });
  file.finish();
  written.files.push_back(options.output);
  return written;
}

/// The event file of a run; "": it has no metrics.
fs::path write_event_file(const run::RunFolder& run_folder,
                          const fs::path& output,
                          WrittenFiles& written) {
  fs::path path;
  std::optional<OutputFile> file;
  Pieces text([&](const std::string& bytes) { file->write(bytes); });
  for_each_metric(run_folder, written, [&](const auto& run, const tables::MetricPoint& metric) {
    if (!file) {
      const fs::path folder = output / run.run_id;
      make_directories(output);
      make_own_folders(output, folder.filename());
      path = folder / tables::tensorboard_file_name(metric);
      file.emplace(path, false);
      text.add(tables::tensorboard_beginning(metric));
    }
    text.add(tables::tensorboard_scalar(metric));
  });
  if (!file) return {};
  text.finish();
  file->finish();
  remove_event_files(path.parent_path(), path);  // those of an earlier export
  return path;
}

/// Hands the metrics of a run to a sink of its own, those of a step together. A step that was
/// repeated counts once.
void send_metrics(const run::RunFolder& folder, const MakeSink& make_sink, WrittenFiles& written) {
  std::unique_ptr<MetricSink> sink;
  std::vector<tables::MetricPoint> of_step;
  const auto send = [&] {
    if (of_step.empty()) return;
    if (!sink) sink = make_sink(folder);
    sink->take(of_step);
    of_step.clear();
  };
  for_each_metric(folder, written, [&](const auto&, const tables::MetricPoint& metric) {
    if (!of_step.empty() && of_step.front().step != metric.step) send();
    of_step.push_back(metric);
  });
  send();
  if (sink) sink->end(run::name_of(folder.state()));
}

/// Runs of the project, of the profile where one is chosen, that are in its runs folder now and
/// that are not archived, unless those are wanted, too.
std::vector<run::RunFolder> runs_of_project(const Context& context,
                                            const project::Project& project,
                                            const TableOptions& options) {
  std::vector<run::RunFolder> folders;
  for (const run::RunFolder& folder : run::list_runs(context.runs_dir())) {
    try {
      const run::RunRecord record = folder.record();
      const std::string& profile = options.profile;
      const bool is_chosen =
          (profile.empty() || folder.config(record).value("profile", "") == profile) &&
          (options.archived || !run::read_annotations(folder).archived);
      if (is_chosen &&
          run::is_of_project(folder, record, project.workspace_root.string(), project.path))
        folders.push_back(folder);
    } catch (const Error& problem) {
      if (may_pass(problem)) throw;
      // Another command is just making or removing it, or it is damaged, which was said before.
    }
  }
  return folders;
}

/// Metrics into sinks while the runs go on.
WrittenFiles stream_runs(const Context& context,
                         const ExportOptions& options,
                         const MakeSink& make_sink) {
  const std::vector<run::RunFolder> folders = runs_to_export(context, options);
  const bool is_whole_project = options.runs.empty();
  const project::Project project = is_whole_project ? context.project() : project::Project();
  std::cerr << "following " << counted(folders.size(), "run")
            << " until they end; Ctrl-C ends this and not the runs\n";
  const Interrupts interrupts;
  LateProgress progress("exporting runs");
  const auto new_runs = [&] {
    return is_whole_project ? runs_of_project(context, project, options.tables)
                            : std::vector<run::RunFolder>();
  };
  const Streamed streamed =
      stream_metrics(folders, make_sink, interrupts, new_runs, progress.reporter());
  return {{}, streamed.runs, streamed.metrics};
}

WrittenFiles export_tensorboard(const Context& context, const ExportOptions& options) {
  if (options.output == "-")
    throw Error("TensorBoard needs a folder", "for example -o tensorboard");
  if (options.follow) return stream_runs(context, options, tensorboard_sink(options.output));
  WrittenFiles written;
  for_each_run(runs_to_export(context, options), [&](const run::RunFolder& folder) {
    const fs::path file = write_event_file(folder, options.output, written);
    if (!file.empty()) written.files.push_back(file.string());
  });
  return written;
}

WrittenFiles export_wandb(const Context& context, const ExportOptions& options) {
  if (options.output == "-")
    throw Error("W&B's client needs a folder for its files", "for example -o wandb_files");
  const MakeSink make_sink = wandb_sink(context.launcher(), options.output);
  if (options.follow) return stream_runs(context, options, make_sink);
  WrittenFiles written;
  const Interrupts interrupts;
  for_each_run(runs_to_export(context, options), [&](const run::RunFolder& folder) {
    if (interrupts.count() > 0)
      throw Error("interrupted: the export is not complete",
                  "remove what it has written and give the command again",
                  ExitCode::failed);
    send_metrics(folder, make_sink, written);
  });
  return written;
}

void print_written(const ExportOptions& options, const WrittenFiles& written) {
  if (options.json) {
    print_json(nlohmann::ordered_json{{"format", options.format},
                                      {"files", written.files},
                                      {"runs", written.runs},
                                      {"metrics", written.metrics}});
    return;
  }
  if (options.format == "tensorboard" || options.format == "wandb") {
    std::cerr << "wrote " << with_thousands(static_cast<long long>(written.metrics))
              << (written.metrics == 1 ? " metric of " : " metrics of ")
              << counted(written.runs, "run") << " below " << options.output << "\n";
    return;
  }
  for (const std::string& file : written.files) std::cerr << "wrote " << file << "\n";
}

int export_results(const Context& context, ExportOptions options) {
  if (options.output.empty()) options.output = "-";
  if (options.format.empty() && !options.json)
    throw Error("--format is required", "one of " + join(export_formats, ", "));
  if (options.json && options.output == "-") {
    if (!options.format.empty() && options.format != "json") {
      throw Error("--json with --format " + options.format + " needs -o");
    }
    options.format = "json";
    export_tables(context, options);
    return 0;
  }
  if (options.format.empty()) options.format = "json";
  const bool exports_runs = options.format == "tensorboard" || options.format == "wandb" ||
                            options.format == "metrics-csv";
  if (options.follow && options.format != "tensorboard" && options.format != "wandb")
    throw Error("--follow applies to the formats tensorboard and wandb",
                "the others are written once");
  if (exports_runs && !options.table.empty()) {
    throw Error("-t applies to the formats latex, csv, json and html",
                "select runs by RUN or --where");
  }
  require_output(options.output, options.force);
  const WrittenFiles written =
      options.format == "tensorboard"   ? export_tensorboard(context, options)
      : options.format == "wandb"       ? export_wandb(context, options)
      : options.format == "metrics-csv" ? export_metrics_csv(context, options)
                                        : export_tables(context, options);
  print_written(options, written);
  return 0;
}

struct PageOptions {
  std::string output;  ///< "-": standard output
  bool force = false;
  bool json = false;
  TableOptions tables;
};

void add_page_options(const Command& command, PageOptions& options, const std::string& output) {
  options.output = output;
  command.add_option("-o,--output <FILE>", options.output, "File to write; - prints it")
      .show_default();
  add_force_flag(command, options.force);
  add_table_options(command, options.tables);
}

int export_markdown(const Context& context, const PageOptions& options) {
  require_output(options.output, options.force);
  const project::Project project = context.project();
  const std::string text = with_html_hash(tables::export_markdown(
      project.name, build_tables(context, project, chosen_tables(project, ""), options.tables)));
  if (write_text(options.output, text)) std::cerr << "wrote " << options.output << "\n";
  return 0;
}

int write_report(const Context& context, const PageOptions& options) {
  if (options.json && options.output == "-")
    throw Error("--json and '-o -' both print to standard output",
                "write the page to a file: -o report.html");
  require_output(options.output, options.force);
  const project::Project project = context.project();
  const page::Page page = collect_page(
      context, project, build_tables(context, project, table_names(project), options.tables));
  const std::string html = with_html_hash(page::to_html(page));
  if (!write_text(options.output, html)) return 0;
  if (options.json) {
    const nlohmann::ordered_json result = {
        {"file", options.output}, {"bytes", html.size()}, {"runs", page.runs.size()}};
    std::cout << tables::printable_json(json_text(result)) << "\n";
  } else {
    std::cerr << "wrote " << options.output << " with " << counted(page.runs.size(), "run") << "\n";
  }
  return 0;
}

}  // namespace

void add_export(const Command& app) {
  const auto [command, options] =
      app.add_command("export", "Write tables or metrics for other programs", export_results);
  command
      .details(
          "Formats of tables:\n"
          "  latex        all tables, or that of -t, for \\input in a paper\n"
          "  csv          one table in full; several go into the folder of -o\n"
          "  json         tables in full, with setup, claims and excluded runs\n"
          "  html         the page of 'forge report', with curves and configs of all runs\n"
          "\n"
          "Formats of runs; without RUN and --where all runs of the project:\n"
          "  tensorboard  event files, one folder per run below the folder of -o\n"
          "  wandb        runs of Weights & Biases, by its own Python client (python3, offline)\n"
          "  metrics-csv  one line per metric and step, for MLflow or pandas\n"
          "\n"
          "tensorboard and wandb can follow runs while they train (--follow). Otherwise the same "
          "runs "
          "always give the same bytes.")
      .examples(
          "forge export --format latex -o tables.tex\n"
          "forge export --format csv -t positions\n"
          "forge export --format tensorboard -o tensorboard\n"
          "forge export --format tensorboard -o tensorboard --follow\n"
          "forge export --format wandb -o wandb_files --follow\n"
          "forge export --format metrics-csv --where config=train_canon_ac -o metrics.csv")
      .see_also("forge compare, forge export-markdown, forge report");
  command.heading("Runs");
  add_run_selector(command, options.runs);
  add_table_options(command, options.tables);
  command.heading("Options");
  command.add_option("--format", options.format, "What to write").one_of(export_formats);
  command.add_option(
      "-o,--output <PATH>", options.output, "File or folder to write [default: standard output]");
  command.add_option("-t,--table", options.table, "Table of the project [default: all]");
  command.add_flag(
      "--follow",
      options.follow,
      "tensorboard, wandb: go on while runs train, and those that come; Ctrl-C ends it");
  add_force_flag(command, options.force);
  add_json_option(
      command, options.json, "Print what was written as JSON; without -o same as --format json");
}

void add_export_markdown(const Command& app) {
  const auto [command, options] = app.add_command(
      "export-markdown", "Write all tables with their setup as Markdown", export_markdown);
  command.examples("forge export-markdown\nforge export-markdown -o - | less")
      .see_also("forge export, forge report");
  add_page_options(command, options, "RESULTS.md");
}

void add_report(const Command& app) {
  const auto [command, options] =
      app.add_command("report", "Write tables, claims and curves as one HTML file", write_report);
  command
      .details(
          "The file is self-contained: it needs no network and no other file. The same runs give "
          "the same file. docs/REPORT.md describes it.")
      .examples("forge report\nforge report -p canon --profile full -o canon.html")
      .see_also("forge compare, forge export");
  add_page_options(command, options, "report.html");
  add_json_option(command, options.json, "Print the file, its size and its number of runs as JSON");
}

}  // namespace forge::app
