#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/manage/run_log.h"
#include "core/results/store/result_store.h"
#include "core/run/open_model.h"
#include "core/run/queue/queue.h"

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
  const std::vector<worker::Evaluation> evaluations = store.evaluations(run->id);
  if (!json) {
    std::cout << result_text(
        *run, store.config(run->id), shown_path(folder.path()), use_colour(STDOUT_FILENO));
    return 0;
  }
  nlohmann::json shown = app::to_json(*run);
  shown["config"] = store.config(run->id);
  shown["evaluations"] = nlohmann::json::array();
  for (const worker::Evaluation& evaluation : evaluations)
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

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(150);

struct RunsLogsOptions {
  std::string name;
  bool follow = false;
  bool prose = false;
  bool events = false;
  bool supervisor = false;
  bool json = false;
};

manage::LogSource source_of(const RunsLogsOptions& options) {
  if (options.prose) return manage::LogSource::worker;
  if (options.events) return manage::LogSource::events;
  return options.supervisor ? manage::LogSource::supervisor : manage::LogSource::all;
}

/// "2026-11-22 00:12:03", UTC.
std::string time_text(double time) {
  std::string text = utc_timestamp(time).substr(0, 19);
  text[10] = ' ';
  return text;
}

void print(const manage::LogLine& entry, const RunsLogsOptions& options, bool colour) {
  if (options.json) {
    std::cout << json_text(to_json(entry)) << "\n";
  } else if (options.events) {
    std::cout << (entry.event.is_null() ? entry.text : json_text(entry.event)) << "\n";
  } else if (entry.time) {
    const bool bad =
        entry.kind == "failed" || (entry.kind == "ended" && entry.text.rfind("failed", 0) == 0);
    std::cout << styled(time_text(*entry.time), Style::dim, colour) << "  "
              << styled(entry.text, bad ? Style::red : Style::plain, colour) << "\n";
  } else if (source_of(options) == manage::LogSource::all) {
    std::cout << "                     | " << entry.text << "\n";
  } else {
    std::cout << entry.text << "\n";
  }
}

/// Nothing more will come of it.
bool is_over(const run::RunFolder& folder) {
  return !FileLock::is_held(folder.lock_file()) &&
         !queue::is_queued(folder.path().parent_path(), folder.id());
}

int print_logs(const Context& context, const RunsLogsOptions& options) {
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  const bool colour = use_colour(STDOUT_FILENO);
  manage::RunLog log(folder, source_of(options));
  bool any = false;
  while (true) {
    const bool over = is_over(folder);  // asked first: what is written until then is seen below
    for (const manage::LogLine& entry : log.poll()) {
      print(entry, options, colour);
      any = true;
    }
    std::cout.flush();
    if (!std::cout) return 0;  // nobody reads any more
    if (!options.follow || over) break;
    std::this_thread::sleep_for(poll_interval);
  }
  if (!any && !options.json)
    std::cerr << "nothing there yet: the run is " << run::name_of(folder.state()) << "\n";
  return 0;
}

}  // namespace

void add_runs_logs(const Command& runs, Program& program) {
  auto options = std::make_shared<RunsLogsOptions>();
  const Command command =
      runs.add_subcommand("logs", "Print what happened in a run and what its worker said");
  command.footer(
      "Times are UTC. The worker's own words stand behind a bar, where they were said. Of "
      "training\n"
      "metrics about twenty are shown; --events has all.\n"
      "\n"
      "Examples:\n"
      "  forge runs logs train_llama-deb27d\n"
      "  forge runs logs train_llama-deb27d -f             until the run ends\n"
      "  forge runs logs train_llama-deb27d --events | jq .loss\n"
      "  forge runs logs train_llama-deb27d --supervisor   where it failed before it began");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_flag("-f,--follow", options->follow, "Go on until the run ends");
  const Argument prose =
      command.add_flag("--stderr", options->prose, "Only the worker's words: stderr.log");
  Argument events =
      command.add_flag("--events", options->events, "Every event as it is stored, one JSON a line");
  Argument supervisor = command.add_flag(
      "--supervisor", options->supervisor, "What the supervisor said, mostly nothing");
  events.excludes(prose);
  supervisor.excludes(prose);
  supervisor.excludes(events);
  command.add_flag("--json", options->json, "One JSON object a line: time, attempt, kind, text");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return print_logs(c, *options); };
  });
}

}  // namespace forge::app
