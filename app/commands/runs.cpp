#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/run_report.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/run_model.h"
#include "core/store/location.h"
#include "core/store/result_store.h"
#include "core/store/run_query.h"

namespace forge::app {
namespace {

/// The store, up to date with the run folders.
store::ResultStore synchronized_store(const std::filesystem::path& runs_dir) {
  store::ResultStore store(store::store_path(runs_dir));
  for (const std::string& warning : store.sync(runs_dir).warnings)
    std::cerr << "warning: " << warning << "\n";
  return store;
}

struct RunsOptions {
  store::RunQuery query;
  std::vector<std::string> columns;
  bool archived = false;
  int limit = 0;
  bool json = false;
};

int list_runs(const Context& context, const RunsOptions& options) {
  store::require_columns(options.columns);
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<store::RunSummary> runs;
  store::RunFilter all;
  all.archived = true;
  if (std::filesystem::exists(runs_dir)) runs = synchronized_store(runs_dir).runs(all);
  size_t archived = 0;
  if (!options.archived) {
    const auto shown = std::stable_partition(
        runs.begin(), runs.end(), [](const store::RunSummary& run) { return run.archived == 0; });
    archived = static_cast<size_t>(runs.end() - shown);
    runs.erase(shown, runs.end());
  }
  const bool some = !runs.empty();
  store::RunQuery query = options.query;
  query.limit = static_cast<size_t>(options.limit);
  runs = store::select(std::move(runs), query);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const store::RunSummary& run : runs) list.push_back(app::to_json(run));
    print_json(list);
  } else if (!some && archived > 0) {
    std::cerr << "no runs but " << archived << " archived; --archived shows them\n";
  } else if (!some) {
    std::cerr << "no runs in " << shown_path(runs_dir) << "; 'forge run CONFIG' makes one\n";
  } else if (runs.empty()) {
    std::cerr << "no run is like that\n";
  } else if (options.columns.empty()) {
    std::cout << result_table(runs, use_colour(STDOUT_FILENO));
  } else {
    std::cout << column_table(runs, options.columns);
  }
  return 0;
}

int show_run(const Context& context, const std::string& name, bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const run::RunFolder folder = run::named_run(runs_dir, name);
  const store::ResultStore store = synchronized_store(runs_dir);
  const std::optional<store::RunSummary> run = store.run(folder.id());
  if (!run || !std::filesystem::equivalent(folder.path(), runs_dir / run->id)) {
    throw Error("'" + name + "' is not among the runs of " + shown_path(runs_dir),
                {},
                "FORGE_RUNS_DIR names another folder of runs",
                ExitCode::failed);
  }
  const std::vector<protocol::Evaluation> evaluations = store.evaluations(run->id);
  if (!json) {
    std::cout << result_text(
        *run, store.config(run->id), shown_path(folder.path()), use_colour(STDOUT_FILENO));
    return 0;
  }
  nlohmann::json shown = app::to_json(*run);
  shown["config"] = store.config(run->id);
  shown["evaluations"] = nlohmann::json::array();
  for (const protocol::Evaluation& evaluation : evaluations)
    shown["evaluations"].push_back(to_json(evaluation));
  print_json(shown);
  return 0;
}

/// All columns, in lines that a terminal has room for.
std::string listed_columns() {
  constexpr size_t most = 96;
  std::string text, line = "Columns:";
  for (const std::string& name : store::column_names()) {
    if (line.size() + name.size() + 1 > most) {
      text += line + "\n";
      line = " ";
    }
    line += " " + name;
  }
  return text + line + "\n";
}

}  // namespace

void add_runs(const Command& app, Program& program) {
  auto options = std::make_shared<RunsOptions>();
  const Command command = app.add_subcommand("runs", "List runs, running ones too, newest first");
  command.add_option("run", options->query.patterns, "Ids or configs: beginnings or patterns")
      .type_name("RUN");
  command
      .add_option("--where",
                  options->query.conditions,
                  "COLUMN=VALUE, or with !=, <, <=, >, >=; may be repeated: all must hold")
      .type_name("CONDITION")
      .repeated();
  command
      .add_option(
          "--sort", options->query.order, "Columns; -COLUMN: large values first; repeatable")
      .type_name("COLUMN")
      .repeated();
  command.add_option("--columns", options->columns, "Print these columns; may be repeated")
      .type_name("COLUMN")
      .repeated();
  command.add_option("-n,--limit", options->limit, "At most so many").positive().type_name("N");
  command.add_flag("--archived", options->archived, "Those that are archived, too");
  command.add_flag("--json", options->json, "As JSON, with every column");
  command.footer(
      listed_columns() +
      "\n"
      "Examples:\n"
      "  forge runs\n"
      "  forge runs \"train_canon_*\" --where status=completed --sort eval_loss -n 5\n"
      "  forge runs --where \"eval_loss<0.52\" --columns id --columns seed --columns eval_loss\n"
      "  forge runs --where tag=paper\n"
      "  forge runs show train_canon_ac-4c14d10abcbf\n"
      "  forge runs show train_canon_ac-4c14 --json\n"
      "  forge runs stop train_canon_ac-4c14");
  command.callback([&program, command, options] {
    if (!command.chosen_subcommand().empty()) return;
    program.action = [options](const Context& c) { return list_runs(c, *options); };
  });

  auto json = std::make_shared<bool>(false);
  auto name = std::make_shared<std::string>();
  const Command show = command.add_subcommand(
      "show", "Show the results of one run; with --json its config and every evaluation as well");
  show.add_option("RUN", *name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  show.add_flag("--json", *json, "As JSON");
  show.callback([&program, name, json] {
    program.action = [name, json](const Context& c) { return show_run(c, *name, *json); };
  });
  add_runs_logs(command, program);
  add_runs_stop(command, program);
  add_runs_save(command, program);
  add_runs_resume(command, program);
  add_runs_rm(command, program);
  add_runs_undo(command, program);
  add_runs_remarks(command, program);
}

}  // namespace forge::app
