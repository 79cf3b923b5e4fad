#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>

#include "app/command_line.h"
#include "app/execute_runs.h"
#include "app/follow_runs.h"
#include "app/halving_search.h"
#include "app/launch.h"
#include "app/process_options.h"
#include "app/run_wait.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "backends/backends.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/manage/written_files.h"
#include "core/results/store/result_store.h"
#include "core/run/allowed_command.h"
#include "core/run/annotations.h"
#include "core/run/checkpoint_space.h"
#include "core/run/host.h"
#include "core/run/open_model.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/withdraw.h"
#include "core/run/request.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
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

std::string start_text(const CheckedRun& run, const run::PlannedRun& planned) {
  const config::TrainConfig& train = run.resolved.experiment.train;
  const worker::Environment& environment = run.backend.environment;
  const int processes = run.resolved.experiment.parallel.processes.count;
  const std::string action = planned.action == run::Action::resume ? "resuming" : "starting";
  return action + ", profile " + run.resolved.experiment.profile + ": " +
         with_thousands(train.max_steps) + " steps of " + std::to_string(train.batch_size) + " × " +
         std::to_string(train.seq_len) + " tokens on " +
         run::device_text(environment.device_type, environment.device_name, environment.threads) +
         (processes > 1 ? ", " + std::to_string(processes) + " processes" : "");
}

/// Refuses a run whose checkpoints have no room, before anything begins.
void warn_of_space(const CheckedRun& checked, const run::PlannedRun& planned) {
  const std::string warning =
      run::check_checkpoint_space(planned.folder.path(), checked.resolved.experiment);
  if (!warning.empty()) std::cerr << "warning: " << checked.label << ": " << warning << "\n";
}

/// Tables leave archived runs out, so that a command to make them would be printed for ever.
std::string completed_hint(const run::PlannedRun& planned) {
  if (!run::read_annotations(planned.folder).archived) return " (--force runs it again)";
  return " and archived ('forge runs archive --restore " + shell_quoted(planned.record.id) +
         "' shows it again, --force runs it again)";
}

/// A renamed project begins with no runs: its old ones keep the name that it had.
void tell_orphan(const CheckedRun& checked, const run::PlannedRun& planned) {
  if (planned.orphan.empty()) return;
  const run::RunRecord record =
      run::RunFolder(planned.folder.path().parent_path() / planned.orphan).record();
  std::cerr << "note: " << checked.label << ": " << tables::printable(planned.orphan)
            << " is the same run of project '" << tables::printable(record.project)
            << "', whose folder is gone; where that is this project under its old name, give it "
               "that name again to go on with its runs\n";
}

/// What the run needs of this machine, whoever starts it.
queue::ResourceRequest demand_of(const CheckedRun& checked, const RunOptions& options) {
  return queue::resource_request(checked.backend.environment,
                                 options.launch.device,
                                 options.queue.jobs,
                                 usable_cores(),
                                 checked.resolved.experiment.parallel.processes.count);
}

/// A command that asks for a run which another one asked for sets what changes no number anew, but
/// not while it runs, nor where another user has queued it.
void tell_changed_settings(const PreparedRun& prepared) {
  const run::PlannedRun& planned = prepared.planned;
  const std::filesystem::path& folder = planned.folder.path();
  const bool runs = planned.action == run::Action::running;
  const bool stays =
      runs || queue::is_queued_by_other_user(folder.parent_path(), planned.folder.id());
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  std::vector<std::string> texts;
  for (const run::IdentityDifference& each : run::changed_settings(planned, prepared.inputs))
    texts.push_back(stays
                        ? each.what + " stays " + shown(each.left) + " and does not become " +
                              shown(each.right)
                        : each.what + " was " + shown(each.left) + " and is " + shown(each.right));
  if (texts.empty()) return;
  const std::string how = !stays ? " is there already, and is changed: "
                          : runs ? " runs already, as it was asked for before: "
                                 : " is queued by another user, as they asked for it: ";
  std::cerr << "note: " << tables::printable(planned.record.id) << how
            << tables::printable(join(texts, "; "))
            << (runs ? "; a stopped run takes what is asked for when it goes on" : "") << "\n";
}

/// A run that never began goes on from the run that another command named.
void tell_beginning(const CheckedRun& checked, const PreparedRun& prepared) {
  const run::RunFolder& folder = prepared.planned.folder;
  if (prepared.planned.action != run::Action::start || !folder.has_record()) return;
  if (!prepared.inputs.continue_from.checkpoint.empty()) return;
  const std::filesystem::path checkpoint = run::continued_checkpoint(folder);
  if (checkpoint.empty()) return;
  std::cerr << "note: " << checked.label << ": begins from " << continued_text(checkpoint)
            << ", as it was asked to before; --force makes another run, from the start\n";
}

/// Writes the run's folder, unless nothing is left to do.
PendingRun prepare(const Context& context,
                   const CheckedRun& checked,
                   const RunOptions& options,
                   const Interrupts& interrupts) {
  PreparedRun prepared = prepare_run(context, checked, options.launch);
  // An attempt that ends is not followed: the command continues the run.
  if (prepared.planned.action == run::Action::running &&
      wait_until_stopped(prepared.planned.folder, &interrupts))
    prepared = prepare_run(context, checked, options.launch);
  PendingRun run{checked.label, "", prepared.planned, {}};
  run.place = checked.place;
  // The config is this user's own, and with it the program that it names.
  run::allow_command(prepared.planned.record.identity, checked.resolved.experiment);
  switch (prepared.planned.action) {
    case run::Action::cached:
      std::cerr << checked.label << ": already completed" << completed_hint(prepared.planned)
                << "\n";
      run::write_run_folder(prepared.planned, prepared.inputs);
      break;
    case run::Action::damaged: break;  // it is reported and not run
    case run::Action::running:
      std::cerr << checked.label << ": already running"
                << (options.queue.detach
                        ? ""
                        : ", following it (Ctrl-C leaves it to other commands that ask for it)")
                << "\n";
      tell_changed_settings(prepared);
      run.demand = demand_of(checked, options);  // it may be stopped before it is asked for
      break;
    case run::Action::start:
    case run::Action::resume:
      tell_orphan(checked, prepared.planned);
      tell_changed_settings(prepared);
      tell_beginning(checked, prepared);
      run.what = start_text(checked, prepared.planned);
      run.demand = demand_of(checked, options);
      warn_of_space(checked, prepared.planned);
      run.made = run::write_run_folder(prepared.planned, prepared.inputs);
      // Another command was faster and has made the run of that number.
      if (!run.made && options.launch.force) return prepare(context, checked, options, interrupts);
  }
  return run;
}

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
                      const std::vector<std::string>& ended,
                      const std::string& table) {
  for (const PendingRun& run : runs) {
    if (std::find(ended.begin(), ended.end(), run.planned.record.id) == ended.end()) return;
  }
  throw Error("table '" + table + "' does not count the runs that it asked for",
              quoted_command("forge compare --table " + shell_quoted(table)) + " says why");
}

/// Runs that are written and can be queued.
struct PreparedRuns {
  std::vector<PendingRun> runs;
  std::vector<const CheckedRun*> checked;  ///< of each
  bool some_are_damaged = false;           ///< they were reported and are not among these
};

PreparedRuns prepare_all(const Context& context,
                         const std::vector<CheckedRun>& selected,
                         const RunOptions& options,
                         const Interrupts& interrupts) {
  PreparedRuns prepared;
  LateProgress progress("preparing runs");
  size_t done = 0;
  try {
    for (const CheckedRun& checked : selected) {
      if (interrupts.count() > 0) break;
      progress(done++, selected.size());
      PendingRun run = prepare(context, checked, options, interrupts);
      if (run.planned.problem) {
        report_damaged(run.label, *run.planned.problem);
        prepared.some_are_damaged = true;
      } else {
        prepared.runs.push_back(std::move(run));
        prepared.checked.push_back(&checked);
      }
    }
  } catch (const Error&) {
    if (interrupts.count() == 0) {
      withdraw_unqueued(context, prepared.runs);
      throw;
    }
  }
  return prepared;
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
    runs.back().pending.demand = demand_of(*prepared.checked[i], options);
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

/// Prepares the runs, then queues and follows them. `ended` are those of this command's rounds
/// before.
ExecutedRuns prepare_and_execute(const Context& context,
                                 const SelectedRuns& selected,
                                 const RunOptions& options,
                                 const std::vector<std::string>& ended) {
  Interrupts interrupts;
  interrupts.let_second_end_program(true);
  const PreparedRuns prepared = prepare_all(context, selected.runs, options, interrupts);
  const std::vector<PendingRun>& runs = prepared.runs;
  if (interrupts.count() > 0) return withdraw_interrupted(context, runs);
  if (prepared.some_are_damaged && (runs.empty() || options.queue.fail_fast)) {
    withdraw_unqueued(context, runs);
    return {run::supervised_failed, false, {}};
  }
  if (!ended.empty()) require_progress(runs, ended, options.selection.table);
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

/// FORGE_RETRY_WAITS, else what supervisors do by themselves. Throws Error where it is no list.
std::vector<double> retry_waits() {
  const char* const waits = std::getenv("FORGE_RETRY_WAITS");
  return waits ? run::retry_waits_from_text(waits) : run::SupervisorOptions().retry_waits;
}

int run_configs(const Context& context, RunOptions options) {
  retry_waits();                   // a mistake in it would show where a worker fails, hours later
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
  if (!options.launch.continue_run.empty())
    run::find_run_by_name_or_path(context.runs_dir(), options.launch.continue_run);
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
  std::vector<std::string> ended;
  bool some_diverged = false;
  for (;;) {
    ExecutedRuns executed = prepare_and_execute(context, selected, options, ended);
    if (!selected.later.empty() && executed.interrupted && executed.exit_code == 0)
      executed.exit_code = run::supervised_stopped;
    ended.insert(ended.end(), executed.ended.begin(), executed.ended.end());
    some_diverged = some_diverged || executed.diverged;
    const bool is_done = executed.exit_code == 0 || executed.diverged;
    const bool goes_on = is_done && !executed.detached && !executed.interrupted;
    if (!selected.later.empty() && !goes_on)
      std::cerr << "the same command goes on when they are completed: " << selected.later << "\n";
    if (selected.later.empty() || !goes_on) {
      if (!executed.detached) print_results(context, ended, options.json);
      return executed.exit_code == 0 && some_diverged ? run::supervised_failed : executed.exit_code;
    }
    selected = next_runs(context, options);
  }
}

struct SuperviseOptions {
  std::string dir;  ///< the run's folder, or with --queue a runs folder
  bool keeps_queue = false;
  int lease = -1;
  std::string device;
  int64_t stop_after = 0;
};

/// Runs an action for other runs; its failure must not end this run.
void try_to(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& problem) {
    std::cerr << as_error(problem).message() << "\n";  // in supervisor.log
  }
}

/// Supervises the run, with these leases of its devices. `has_held` becomes true when it held the
/// run's lock, and no more.
int supervise_run(const Context& context,
                  const SuperviseOptions& options,
                  const run::RunFolder& folder,
                  const std::vector<int>& leases,
                  const std::function<void(queue::IfLocked)>& dispatch_queue,
                  bool& has_held) {
  const std::filesystem::path runs_dir = folder.path().parent_path();
  const config::Experiment experiment =
      config::experiment_from_json(run::read_request(folder).experiment);
  run::require_allowed_command(folder.id(), folder.record().identity, experiment);
  const auto backend = context.backend(experiment);
  run::SupervisorOptions supervision;
  supervision.retry_waits = retry_waits();
  if (!options.device.empty()) supervision.devices = split(options.device, ',');
  supervision.stop_after = options.stop_after;
  supervision.leases = leases;
  supervision.forget_descriptions = [] { backends::forget_descriptions(user_cache_dir()); };
  supervision.periodic_task = [&] { dispatch_queue(queue::IfLocked::skip); };
  supervision.at_end = [&](int exit_code) {
    has_held = true;
    const bool failed =
        exit_code != run::supervised_completed && exit_code != run::supervised_stopped;
    try_to([&] { queue::finish_queued_run(runs_dir, folder.id(), failed); });
  };
  return run::supervise(folder, *backend, context.launcher(), supervision);
}

int supervise(const Context& context, const SuperviseOptions& options) {
  std::signal(SIGUSR1, SIG_IGN);  // a scheduler may send it to all of a job: the worker saves
  const std::filesystem::path path = std::filesystem::absolute(options.dir).lexically_normal();
  if (options.keeps_queue) {
    queue::keep_queue(path, context.program());
    return run::supervised_completed;
  }
  const run::RunFolder folder(path);
  // Of several devices the leases are one behind the other.
  const auto count = std::max<size_t>(1, split(options.device, ',').size());
  std::vector<int> leases;
  for (int i = 0; options.lease >= 0 && i < static_cast<int>(count); ++i)
    leases.push_back(options.lease + i);
  const auto dispatch_queue = [&](queue::IfLocked if_locked) {
    try_to([&] { queue::dispatch(folder.path().parent_path(), context.program(), if_locked); });
  };
  const auto hand_on = [&](int exit_code) {
    for (const int lease : leases) queue::release_lease(lease);  // for the next run
    const std::filesystem::path runs_dir = folder.path().parent_path();
    // Where no keeper can be started, or the queue cannot be read at this moment, this process is
    // the last one that can look after it.
    bool is_last = true;
    try_to([&] {
      const queue::DispatchResult done =
          queue::dispatch(runs_dir, context.program(), queue::IfLocked::wait);
      is_last = done.needs_keeper && done.keeper == 0;
    });
    if (is_last) try_to([&] { queue::keep_queue(runs_dir, context.program()); });
    return exit_code;
  };
  bool has_held = false;
  try {
    return hand_on(supervise_run(context, options, folder, leases, dispatch_queue, has_held));
  } catch (const Error& problem) {
    // Until a run's lock is taken its starter waits, and holds the queue: it goes on by itself.
    if (has_held) hand_on(static_cast<int>(problem.exit_code()));
    if (has_held || !may_pass(problem)) throw;
    std::cerr << describe(problem) << "\n";
    return run::supervised_refused;
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

void add_supervise(const Command& app) {
  // Hidden: 'forge run' calls this, as a cluster's scheduler would.
  const auto [command, options] = app.add_command("supervise", "", supervise);
  command.hidden();
  command.add_option("DIR", options.dir, "Run folder").required();
  command.add_flag("--queue", options.keeps_queue, "Start what waits in this runs folder's queue");
  command.add_option("--lease", options.lease, "Descriptor to keep open during the run");
  command.add_option("--device", options.device, "Device instead of the request's; or A,B,…");
  command.add_option("--stop-after", options.stop_after, "Step of a rung to stop at");
}

}  // namespace forge::app
