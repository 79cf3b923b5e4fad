#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/manage/run_edits.h"
#include "core/manage/run_log.h"
#include "core/project/names.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/run/open_model.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

struct RunsOptions {
  store::RunQuery query;
  std::vector<std::string> columns;
  bool archived = false;
  int limit = 0;
  bool json = false;
};

void warn_of_stopped(const std::filesystem::path& runs_dir, const store::RunSummary& run) {
  if (run.status != run::RunState::running) return;
  const std::string text = stopped_text(run::RunFolder(runs_dir / run.id));
  if (!text.empty()) print_warnings({text});
}

/// A misspelt command of 'forge runs' is a pattern of no run.
void require_runs_called(const std::vector<store::RunSummary>& known,
                         const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    store::RunQuery query;
    query.patterns = {pattern};
    if (project::is_pattern(pattern) || !store::select(known, query).empty()) continue;
    throw Error(
        "no run is called '" + pattern + "', and 'forge runs' has no such command",
        did_you_mean(
            pattern,
            {"archive", "logs", "note", "resume", "rm", "save", "show", "stop", "tag", "undo"},
            "'forge runs --help' lists its commands, 'forge runs' the runs"),
        ExitCode::usage);
  }
}

int list_runs(const Context& context, const RunsOptions& options) {
  std::vector<std::string> columns;
  for (const std::string& names : options.columns) {
    for (std::string& name : split(names, ',')) columns.push_back(std::move(name));
  }
  store::require_names(columns);
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<store::RunSummary> known = stored_runs(context, chosen_project(context));
  if (!known.empty()) require_runs_called(known, options.query.patterns);
  size_t archived = 0;
  if (!options.archived) {
    const auto shown = std::stable_partition(
        known.begin(), known.end(), [](const auto& run) { return run.archived == 0; });
    archived = static_cast<size_t>(known.end() - shown);
    known.erase(shown, known.end());
  }
  const bool some = !known.empty();
  store::RunQuery query = options.query;
  query.limit = static_cast<size_t>(options.limit);
  const bool shows_keys = columns.empty() ? !options.json : !store::are_columns(columns);
  const std::vector<store::ConfiguredRun> runs =
      select_stored(context, std::move(known), query, shows_keys);
  for (const store::ConfiguredRun& run : runs) warn_of_stopped(runs_dir, run.summary);
  if (options.json)
    return print_json(json_list(runs, [&](const store::ConfiguredRun& run) {
      nlohmann::json json = app::to_json(run.summary);
      for (const std::string& name : columns)
        if (!json.contains(name)) json[name] = store::value_of(run, name);
      return json;
    }));
  if (!some && archived > 0) {
    std::cerr << "no runs except " << archived << " archived ones; --archived lists them\n";
  } else if (!some) {
    std::cerr << "no runs in " << shown_path(runs_dir) << "; 'forge run CONFIG' starts one\n";
  } else if (runs.empty()) {
    std::cerr << "no runs match\n";
  } else if (columns.empty()) {
    std::cout << result_table(runs);
  } else {
    std::cout << column_table(runs, columns);
  }
  return 0;
}

struct RunsShowOptions {
  std::string name;
  bool json = false;
};

int show_run(const Context& context, const RunsShowOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const run::RunFolder folder = context.find_run(options.name);
  const store::ResultStore store = open_store(context);
  std::optional<store::RunSummary> run = store.run(folder.id());
  if (!run || !std::filesystem::equivalent(folder.path(), runs_dir / run->id)) {
    throw Error("'" + options.name + "' is not in the runs folder " + shown_path(runs_dir),
                "FORGE_RUNS_DIR selects another runs folder",
                ExitCode::failed);
  }
  run->step = store::current_step(runs_dir, *run);
  warn_of_stopped(runs_dir, *run);
  const std::filesystem::path continued = run::continued_checkpoint(folder);
  if (!options.json) {
    const nlohmann::json config = store.config(run->id);
    std::cout << result_text(*run, config, shown_path(folder.path())) << "\n"
              << origin_text(*run, config, continued);
    return 0;
  }
  nlohmann::json shown = app::to_json(*run);
  shown["continues"] = continued_json(continued);
  shown["config"] = store.config(run->id);
  shown["evaluations"] = json_list(store.evaluations(run->id),
                                   [](const auto& evaluation) { return app::to_json(evaluation); });
  return print_json(shown);
}

void add_runs_show(const Command& runs) {
  const auto [command, options] = runs.add_command("show", "Show the results of one run", show_run);
  command
      .examples("forge runs show train_canon_ac-4c14\nforge runs show train_canon_ac-4c14 --json")
      .see_also("forge runs logs, forge why");
  add_run_argument(command, options.name);
  add_json_option(command, options.json, "Print JSON with the config and every evaluation");
}

constexpr auto log_poll_interval = std::chrono::milliseconds(150);

struct RunsLogsOptions {
  std::string name;
  bool follow = false;
  bool worker_stderr = false;
  bool events = false;
  bool supervisor = false;
  bool json = false;
};

manage::LogSource log_source(const RunsLogsOptions& options) {
  if (options.worker_stderr) return manage::LogSource::worker;
  if (options.events) return manage::LogSource::events;
  return options.supervisor ? manage::LogSource::supervisor : manage::LogSource::all;
}

/// "2026-11-22 00:12:03", UTC.
std::string time_text(double time) {
  std::string text = utc_timestamp(time).substr(0, 19);
  text[10] = ' ';
  return text;
}

void print(const manage::LogLine& entry, const RunsLogsOptions& options) {
  if (options.json) {
    std::cout << tables::printable_json(json_text(to_json(entry))) << "\n";
  } else if (options.events) {
    std::cout << (entry.event.is_null() ? entry.text
                                        : tables::printable_json(json_text(entry.event)))
              << "\n";
  } else if (entry.time) {
    const bool bad =
        entry.kind == "failed" || (entry.kind == "ended" && entry.text.rfind("failed", 0) == 0);
    std::cout << styled(time_text(*entry.time), Style::dim) << "  "
              << styled(entry.text, bad ? Style::red : Style::plain) << "\n";
  } else {
    const bool among_events = log_source(options) == manage::LogSource::all;
    std::cout << (among_events ? "                     | " : "")
              << (entry.rank ? "process " + std::to_string(*entry.rank) + ": " : "") << entry.text
              << "\n";
  }
}

/// Whether the log is complete.
bool is_over(const run::RunFolder& folder) {
  return !folder.is_running() && !queue::is_queued(folder.path().parent_path(), folder.id());
}

int print_logs(const Context& context, const RunsLogsOptions& options) {
  const run::RunFolder folder = context.find_run(options.name);
  manage::RunLog log(folder, log_source(options));
  bool any = false;
  if (options.follow && folder.state() == run::RunState::queued)
    std::cerr << folder.id() << " is queued; its log begins when it starts\n";
  std::string stopped;
  while (true) {
    if (const std::string now = stopped_text(folder); now != stopped) {
      if (!now.empty()) print_warnings({now});
      stopped = now;
    }
    if (options.follow && !folder.is_running()) warn_of_unserved_queue(context.runs_dir());
    const bool over = is_over(folder);  // checked first: what was written by then is read below
    log.poll([&](const manage::LogLine& entry) {
      print(entry, options);
      any = true;
    });
    std::cout.flush();
    if (!std::cout) return 0;  // the reader has closed the pipe
    if (!options.follow || over) break;
    std::this_thread::sleep_for(log_poll_interval);
  }
  if (any) return 0;
  manage::require_not_removed(folder);
  if (options.json) return 0;
  const run::RunState state = folder.state();
  std::cerr << "no log yet: the run is " << run::name_of(state)
            << (state == run::RunState::not_started
                    ? "; " + quoted_command("forge runs resume " + shell_quoted(folder.id())) +
                          " starts it"
                    : "")
            << "\n";
  return 0;
}

}  // namespace

void add_runs(const Command& app) {
  const auto [command, options] =
      app.add_command("runs", "List and manage runs, newest first", list_runs);
  command.details("Columns: " + join(store::column_names(), ", "))
      .examples(
          "forge runs\n"
          "forge runs \"train_canon_*\" --where status=completed --sort eval_loss -n 5\n"
          "forge runs --where \"eval_loss<0.52\" --columns id,seed,eval_loss\n"
          "forge runs --where optimizer.lr=0.001 --columns id,seed,optimizer.lr,eval_loss\n"
          "forge runs --where tag=paper\n"
          "forge runs show train_canon_ac-4c14\n"
          "forge runs stop train_canon_ac-4c14")
      .see_also("forge status, forge compare, docs/RUNS.md");
  command.add_option(
      "RUN", options.query.patterns, "Ids or configs to list: prefixes or patterns [default: all]");
  command
      .add_option("--where <CONDITION>",
                  options.query.conditions,
                  "List runs with COLUMN=VALUE or KEY=VALUE (also !=, <, <=, >, >=); all "
                  "conditions must hold")
      .repeated();
  command
      .add_option("--sort <COLUMN>",
                  options.query.order,
                  "Sort by a column or config key; -COLUMN: descending")
      .repeated();
  command
      .add_option("--columns <COLUMN>",
                  options.columns,
                  "Print this column or config key, or several with commas between")
      .repeated();
  command.add_option("-n,--limit", options.limit, "Maximum number of runs").at_least(1);
  command.add_flag("--archived", options.archived, "Include archived runs");
  add_json_option(command, options.json, "Print JSON with every column");
  add_runs_show(command);
  add_runs_logs(command);
  add_runs_control(command);
  add_runs_edit(command);
}

void add_runs_logs(const Command& runs) {
  const auto [command, options] =
      runs.add_command("logs", "Print the events of a run and its worker's output", print_logs);
  command
      .details(
          "Times are UTC. The worker's stderr is shown after a bar; of a run by several processes "
          "each line says which one wrote it. About twenty training metrics are shown; --events "
          "prints all.")
      .examples(
          "forge runs logs train_llama-deb27d\n"
          "forge runs logs train_llama-deb27d -f             until the run ends\n"
          "forge runs logs train_llama-deb27d --events | jq .loss")
      .see_also("forge runs show, forge status");
  add_run_argument(command, options.name);
  command.add_flag("-f,--follow", options.follow, "Print new events until the run ends");
  const Argument worker =
      command.add_flag("--stderr", options.worker_stderr, "Only the worker's stderr");
  Argument events =
      command.add_flag("--events", options.events, "Every stored event, one JSON object per line");
  Argument supervisor =
      command.add_flag("--supervisor", options.supervisor, "Only the supervisor's log");
  events.excludes(worker);
  supervisor.excludes(worker);
  supervisor.excludes(events);
  add_json_option(command,
                  options.json,
                  "One JSON object per line: time, attempt, kind, text; rank of several processes");
}

}  // namespace forge::app
