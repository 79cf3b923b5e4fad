#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <optional>

#include "app/command_line.h"
#include "app/execute_runs.h"
#include "app/follow_runs.h"
#include "app/halving_search.h"
#include "app/launch.h"
#include "app/prepare_runs.h"
#include "app/process_options.h"
#include "app/runs.h"
#include "app/select_runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/manage/written_files.h"
#include "core/results/store/result_store.h"
#include "core/run/queue/withdraw.h"
#include "core/run/runs_dir.h"
#include "core/run/saved_plan.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

struct RunOptions {
  RunSelection selection;
  LaunchOptions launch;
  QueueOptions queue;
  std::string backend;  ///< "": the config's own
  ProcessOptions processes;
  PlanOptions plan;
  std::string saved_plan;  ///< --plan: file of a saved plan, ""
  bool dry_run = false;
  bool json = false;
};

/// The runs of a saved plan, with the options that it was made with.
std::vector<CheckedRun> saved_runs(const Context& context, RunOptions& options) {
  const RunSelection& selection = options.selection;
  const LaunchOptions& launch = options.launch;
  const bool selects = selection.all || !selection.table.empty() || !selection.configs.empty() ||
                       !selection.sweeps.empty() || !selection.seeds.empty() ||
                       selection.seed_count > 0;
  const bool changes = !launch.overrides.empty() || !launch.continue_run.empty() ||
                       launch.device != LaunchOptions().device || launch.threads != 0;
  if (selects || changes || launch.force)
    throw Error("--plan cannot be combined with options that select or change runs",
                "make another plan with --save-plan");
  const run::SavedPlan plan = run::read_plan(options.saved_plan);
  options.launch.device = plan.device;
  options.launch.threads = plan.threads;
  options.launch.continue_run = plan.continue_run;
  std::vector<CheckedRun> runs;
  for (const run::SavedRun& saved : plan.runs)
    runs.push_back(check_config(context, saved, options.launch));
  return runs;
}

/// Outside of any workspace runs go where few would look for them later.
void tell_where_runs_go(const Context& context) {
  const char* chosen = std::getenv("FORGE_RUNS_DIR");
  if (context.own_workspace() || (chosen && *chosen)) return;
  std::cerr << "not in a workspace: runs are written to " << shown_path(context.runs_dir())
            << " ('forge init' makes this folder a workspace)\n";
}

/// The runs that can be made now, all of them checked before the first one starts.
SelectedRuns next_runs(const Context& context, RunOptions& options) {
  if (!options.saved_plan.empty()) return {saved_runs(context, options), ""};
  return check_selected_configs(context, options.selection, options.launch);
}

/// The ids of the runs if every one is completed already. Nothing is written into the runs folder.
std::optional<std::vector<std::string>> completed_ids(const Context& context,
                                                      const SelectedRuns& selected,
                                                      const RunOptions& options) {
  if (!selected.later.empty()) return std::nullopt;
  std::vector<std::string> ids;
  for (const CheckedRun& run : selected.runs) {
    const ForeseenRun foreseen = foresee_run(context, run, options.launch);
    const run::PlannedRun planned =
        foreseen.planned ? *foreseen.planned : prepare_run(context, run, options.launch).planned;
    if (planned.action != run::Action::cached) return std::nullopt;
    ids.push_back(planned.record.id);
  }
  return ids;
}

/// Whether these are runs that this command has made already, and none come behind them.
bool asks_for_no_more(const Context& context,
                      const SelectedRuns& selected,
                      const RunOptions& options,
                      const CommandSoFar& command) {
  RunOptions unforced = options;
  unforced.launch.force = false;
  const auto completed = completed_ids(context, selected, unforced);
  return completed && std::all_of(completed->begin(), completed->end(), [&](const auto& id) {
           return command.has_made(id);
         });
}

/// Prints the results that a runs folder which cannot be written has already. False where runs are
/// left to be made.
bool print_completed(const Context& context,
                     const SelectedRuns& selected,
                     const RunOptions& options) {
  const auto completed = completed_ids(context, selected, options);
  if (!completed) return false;
  for (const CheckedRun& run : selected.runs) std::cerr << run.label << ": already completed\n";
  print_results(context, *completed, options.json);
  return true;
}

/// Throws Error if these are the runs that the table has just got: it does not count them.
void require_progress(const std::vector<PendingRun>& runs,
                      const CommandSoFar& command,
                      const std::string& table) {
  for (const PendingRun& run : runs) {
    if (!command.has_made(run.planned.record.id)) return;
  }
  throw Error("table '" + table + "' does not count the runs that it asked for",
              quoted_command("forge compare --table " + shell_quoted(table)) + " says why");
}

/// Executes the runs as far as halving lets them go on. The result has all that have begun.
ExecutedRuns execute_search(const Context& context,
                            const PreparedRuns& prepared,
                            const run::HalvingRule& rule,
                            const RunOptions& options,
                            Interrupts& interrupts) {
  std::vector<HalvedRun> runs;
  for (size_t i = 0; i < prepared.runs.size(); ++i) {
    runs.push_back({prepared.checked[i], prepared.runs[i]});
    // Also one that is only followed as yet may be sent on.
    runs.back().pending.demand = demand_of(*prepared.checked[i], options.launch, options.queue);
  }
  HalvingSearch search(std::move(runs), rule);
  QueueOptions queue = options.queue;
  queue.group = new_group();
  ExecutedRuns executed =
      execute_runs(context, search.next({}), queue, interrupts, options.json, &search);
  std::cerr << search.summary();
  if (const std::optional<Error>& problem = search.problem()) {
    std::cerr << "error: " << tables::printable(problem->message()) << "\nhint: " << problem->hint()
              << "\n";
    executed.exit_code = std::max(executed.exit_code, run::supervised_failed);
  }
  if (search.ends_without_best())
    executed.exit_code = std::max(executed.exit_code, run::supervised_failed);
  if (executed.exit_code == run::supervised_stopped)
    std::cerr << "the same command goes on with the search\n";
  executed.ended = search.ranked_ids();
  return executed;
}

/// Prepares the runs, then queues and follows them.
ExecutedRuns prepare_and_execute(const Context& context,
                                 const SelectedRuns& selected,
                                 const RunOptions& options,
                                 CommandSoFar& command) {
  Interrupts interrupts;
  interrupts.let_second_end_program(true);
  const PreparedRuns prepared =
      prepare_all(context, selected.runs, options.launch, options.queue, command, interrupts);
  const std::vector<PendingRun>& runs = prepared.runs;
  if (interrupts.count() > 0) return withdraw_interrupted(context, runs);
  if (prepared.some_are_damaged && (runs.empty() || options.queue.fail_fast)) {
    withdraw_unqueued(context, runs);
    return {run::supervised_failed, false, {}};
  }
  if (!command.ended.empty()) require_progress(runs, command, options.selection.table);
  ExecutedRuns executed =
      selected.halving ? execute_search(context, prepared, *selected.halving, options, interrupts)
                       : execute_runs(context, runs, options.queue, interrupts, options.json);
  if (prepared.some_are_damaged) {
    executed.exit_code = std::max(executed.exit_code, run::supervised_failed);
    executed.diverged = false;  // nor are all others completed
  }
  if (interrupts.count() > 0) executed.interrupted = true;
  return executed;
}

/// Throws Error for options that would take the search from this command.
void check_search(const SelectedRuns& selected, const RunOptions& options) {
  if (!selected.halving) return;
  check_halving(selected.runs, *selected.halving);
  const auto refuse = [](bool given, const std::string& option, const std::string& hint) {
    if (given) throw Error(option + " cannot be combined with halving", hint);
  };
  refuse(options.queue.detach,
         "--detach",
         "this command decides which runs go on; the same command goes on with a search that was "
         "left");
  refuse(options.launch.force, "--force", "'forge runs rm' removes the runs of an old search");
  refuse(!options.launch.continue_run.empty(), "--continue", "leave it out");
  refuse(!options.plan.save.empty(),
         "--save-plan",
         "a plan is a list of complete runs; --dry-run shows what halving leaves of it");
}

/// --backend, --gpus and --processes set keys of the config.
void take_key_options(RunOptions& options) {
  if (!options.backend.empty()) {
    require_not_set(options.launch.overrides, "backend", "--backend " + options.backend);
    options.launch.overrides.push_back("backend=" + options.backend);
  }
  take_process_options(options.processes, options.launch);
}

int run_configs(const Context& context, RunOptions options) {
  run::chosen_retry_waits();  // else a mistake in it is found where a worker fails, hours later
  if (!options.plan.save.empty())  // --force says what to run, not what to replace
    manage::require_replaceable(options.plan.save, "name another file, or move this one away");
  take_key_options(options);
  const int jobs = options.queue.jobs;
  if (jobs > 1 && options.launch.threads == 0)
    options.launch.threads = queue::threads_for(jobs, usable_cores());
  const bool only_plans = options.dry_run || options.plan.probe || !options.plan.save.empty();
  std::optional<store::ScratchStore> scratch;
  if (only_plans) {
    scratch.emplace(context.runs_dir());
  } else {
    allow_detaching();  // first: backends are asked for minutes
  }
  SelectedRuns selected = next_runs(context, options);
  check_search(selected, options);
  // Also where nothing is left to continue: a misspelt name would never be noticed.
  if (!options.launch.continue_run.empty()) context.find_run(options.launch.continue_run);
  if (only_plans) {
    options.plan.json = options.json;
    options.plan.halving = selected.halving;
    const bool whole = print_plan(context, selected.runs, options.launch, options.plan);
    if (!selected.later.empty()) std::cerr << "then " << selected.later << "\n";
    return static_cast<int>(whole ? ExitCode::done : ExitCode::failed);
  }
  tell_where_runs_go(context);
  const bool is_read_only = is_folder(context.runs_dir()) && !run::can_write(context.runs_dir());
  if (is_read_only && print_completed(context, selected, options))
    return static_cast<int>(ExitCode::done);
  run::make_runs_dir(context.runs_dir());
  open_store(context);  // a damaged or newer store is found before anything is prepared
  CommandSoFar command;
  std::vector<std::string>& ended = command.ended;
  bool some_diverged = false;
  const auto finish = [&](const ExecutedRuns& last) {
    if (!last.detached) print_results(context, ended, options.json);
    return last.exit_code == 0 && some_diverged ? run::supervised_failed : last.exit_code;
  };
  for (;;) {
    ExecutedRuns executed = prepare_and_execute(context, selected, options, command);
    if (!selected.later.empty() && executed.interrupted && executed.exit_code == 0)
      executed.exit_code = run::supervised_stopped;
    std::copy_if(executed.ended.begin(),
                 executed.ended.end(),
                 std::back_inserter(ended),
                 [&](const std::string& id) { return !command.has_made(id); });
    some_diverged = some_diverged || executed.diverged;
    const bool is_done = executed.exit_code == 0 || executed.diverged;
    const bool goes_on = is_done && !executed.detached && !executed.interrupted;
    if (!selected.later.empty() && !goes_on)
      std::cerr << "the same command goes on when they are completed: " << selected.later << "\n";
    if (selected.later.empty() || !goes_on) return finish(executed);
    selected = next_runs(context, options);
    if (asks_for_no_more(context, selected, options, command)) return finish(executed);
  }
}

}  // namespace

void add_run(const Command& app) {
  const auto [command, options] =
      app.add_command("run", "Train configs and print their results", run_configs);
  command
      .details(
          "Runs wait in a queue until a device has room for them. A completed run is not repeated. "
          "Ctrl-C saves a checkpoint and stops; the same command continues from there. A second "
          "Ctrl-C stops at once. A run that another command asks for, too, goes on.\n"
          "\n"
          "Closing the terminal or Ctrl-\\ leaves all runs running and queued. They survive the "
          "end of forge itself; 'forge runs stop' stops them.\n"
          "\n"
          "Exit codes: 1 a run failed, 2 wrong usage or config, 3 stopped, not started or left "
          "running, 4 the disk is full or fails.")
      .examples(
          "forge run train_canon_ac\n"
          "forge run train_llama train_canon_ac --set train.max_steps=100\n"
          "forge run --all -p canon --set profile=full\n"
          "forge run \"train_canon_a*\" --seeds 3\n"
          "forge run --table positions --seed 1,2,3 --jobs 2\n"
          "forge run train_llama --sweep optimizer.lr=3e-4,1e-3 --sweep train.batch_size=16,32\n"
          "forge run train_llama --sweep \"optimizer.lr=log(1e-4,1e-2,5)\"\n"
          "forge run train_llama --sweep \"optimizer.lr=log_uniform(1e-4,1e-2)\" --samples 9\n"
          "forge run train_llama --sweep \"optimizer.lr=log(1e-4,1e-2,9)\" --halving 50\n"
          "forge run --sweep learning_rates                 sweeps/learning_rates.yaml\n"
          "forge run --all --seeds 5 --dry-run              print the plan and its estimated time\n"
          "forge run --all --seeds 5 --save-plan plan.json\n"
          "forge run --plan plan.json --detach --fail-fast\n"
          "forge run train_canon_ac --set train.max_steps=600 --continue train_canon_ac-5a0c\n"
          "forge run train_llama --set train.gradient_slots=4 --processes 2   two share the work")
      .see_also(
          "forge status, forge runs, forge compare, docs/RUNS.md, docs/SWEEPS.md, "
          "docs/PARALLEL.md");
  command.heading("Select runs");
  add_configs_argument(command, options.selection.configs, "Configs to train, by name or pattern");
  command.add_flag("--all", options.selection.all, "Every training config of the project");
  command.add_option("--table", options.selection.table, "Every config of a table");
  command
      .add_option("--sweep <KEY=A,B|SWEEP>",
                  options.selection.sweeps,
                  "One run per value of a key, or a sweep that the project declares; several "
                  "sweeps are combined. Values: A,B or linear(A,B,N) or log(A,B,N); drawn: "
                  "uniform(A,B), log_uniform(A,B) or choice(A,B)")
      .repeated();
  command.add_option("--samples", options.selection.sample_count, "Draw N points of the drawn keys")
      .at_least(1);
  command.add_option(
      "--sample-seed <SEED>", options.selection.sample_seed, "Seed of the draws [default: 1]");
  command
      .add_option("--halving <STEP>",
                  options.selection.halving,
                  "Compare the runs after STEP steps, three times as many, and so on; the best "
                  "third goes on each time")
      .at_least(1);
  command.add_option("--seed <SEEDS>", options.selection.seeds, "Seeds: 1,2,3 or 1..5");
  command
      .add_option("--seeds",
                  options.selection.seed_count,
                  "Number of seeds, counted up from --seed or the config's: --seed 1 --seeds 3 "
                  "is --seed 1,2,3")
      .at_least(1);
  command.add_option("--continue <RUN>",
                     options.launch.continue_run,
                     "Continue this run with another budget; only train.max_steps may differ");
  command.add_option("--plan <FILE>", options.saved_plan, "Run a plan saved with --save-plan")
      .existing_file();
  command.heading("Change configs");
  add_set_option(command, options.launch.overrides);
  command.add_option("--backend", options.backend, "Same as --set backend=BACKEND");
  add_process_options(command, options.processes, "Train each run");
  command.heading("Plan");
  command.add_flag("--dry-run",
                   options.dry_run,
                   "Print the plan with its estimated time; write nothing but caches");
  command.add_flag("--probe",
                   options.plan.probe,
                   "Like --dry-run; estimate runs without history by a short benchmark");
  command.add_option("--save-plan <FILE>",
                     options.plan.save,
                     "Like --dry-run; prepare data and write the plan to a file");
  command.heading("Options");
  add_queue_options(command, options.queue);
  command.add_flag(
      "--fail-fast", options.queue.fail_fast, "Start no more runs after the first failure");
  command.add_flag("--force", options.launch.force, "Run completed runs again");
  add_device_options(command, options.launch.device, options.launch.threads);
  add_json_option(command, options.json, "Print results as JSON");
}

}  // namespace forge::app
