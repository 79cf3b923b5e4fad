#include <iostream>

#include "app/commands.h"
#include "app/conduct.h"
#include "app/launch.h"
#include "app/run_outcomes.h"
#include "app/run_plan.h"
#include "app/selection.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/run/runs_dir.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

struct RunOptions {
  Selection selection;
  LaunchOptions launch;
  ConductOptions conduct;
  std::string backend;  ///< "": the config's own
  PlanOptions plan;
  std::string saved_plan;  ///< --plan: file of a plan to execute, ""
  bool dry_run = false;
  bool detach = false;
  bool json = false;
};

std::string what_it_does(const Launch& launch, const run::PlannedRun& planned) {
  const config::TrainConfig& train = launch.resolved.experiment.train;
  const protocol::Environment& environment = launch.backend.environment;
  std::string text = planned.action == run::Action::resume ? "resuming" : "starting";
  text += ", profile " + launch.resolved.experiment.profile + ": " +
          with_thousands(train.max_steps) + " steps of " + std::to_string(train.batch_size) +
          " × " + std::to_string(train.seq_len) + " tokens on " + environment.device_name;
  if (environment.device_type == "cpu")
    text += ", " + std::to_string(environment.threads) +
            (environment.threads == 1 ? " thread" : " threads");
  return text;
}

/// Writes the run's folder where something is left to do.
ToDo prepare(const Context& context, const Launch& launch, const RunOptions& options) {
  const PreparedLaunch prepared = prepare_launch(context, launch, options.launch);
  ToDo run{launch.label, "", prepared.planned, {}};
  switch (prepared.planned.action) {
    case run::Action::cached:
      std::cerr << launch.label << ": done before, nothing to do (--force runs it again)\n";
      break;
    case run::Action::running:
      std::cerr << launch.label << ": already running, following it\n";
      break;
    case run::Action::start:
    case run::Action::resume:
      run.what = what_it_does(launch, prepared.planned);
      run.demand = queue::demand_of(
          launch.backend.environment, options.launch.device, options.conduct.jobs, usable_cores());
      run::write_run_folder(prepared.planned, prepared.inputs);
  }
  return run;
}

/// The launches of a plan that was saved, and how it was made.
std::vector<Launch> saved_launches(const Context& context, RunOptions& options) {
  const Selection& asked = options.selection;
  const LaunchOptions& launch = options.launch;
  const bool selects = asked.all || !asked.table.empty() || !asked.configs.empty() ||
                       !asked.sweeps.empty() || !asked.seeds.empty() || asked.seed_count > 0;
  const bool changes = !launch.overrides.empty() || !launch.continue_run.empty() ||
                       launch.device != LaunchOptions().device || launch.threads != 0;
  if (selects || changes || launch.force)
    throw Error("--plan says which runs there are, what they are made from, and where they run",
                {},
                "make another plan with --save-plan for other runs");
  const run::SavedPlan plan = run::read_plan(options.saved_plan);
  options.launch.device = plan.device;
  options.launch.threads = plan.threads;
  options.launch.continue_run = plan.continue_run;
  std::vector<Launch> launches;
  for (const run::SavedRun& saved : plan.runs)
    launches.push_back(check_launch(context, saved, options.launch));
  return launches;
}

int run_configs(const Context& context, RunOptions options) {
  const int jobs = options.conduct.jobs;
  if (jobs > 1 && options.launch.threads == 0)
    options.launch.threads = queue::threads_for(jobs, usable_cores());
  // Whatever can be wrong is found before the first run starts.
  const std::vector<Launch> launches =
      options.saved_plan.empty() ? selected_launches(context, options.selection, options.launch)
                                 : saved_launches(context, options);
  if (options.dry_run || options.plan.probe || !options.plan.save.empty()) {
    options.plan.json = options.json;
    print_plan(context, launches, options.launch, options.plan);
    return 0;
  }
  const std::filesystem::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  store::ResultStore store(store::store_path(runs_dir));
  std::vector<ToDo> runs;
  for (const Launch& launch : launches) runs.push_back(prepare(context, launch, options));
  enqueue(context, runs, options.conduct);
  if (options.detach) return leave_in_queue(context, runs, options.json);
  return conduct_and_report(context, store, runs, options.json);
}

}  // namespace

void add_run(const Command& app, Program& program) {
  auto options = std::make_shared<RunOptions>();
  const Command command = app.add_subcommand("run", "Train configs and print their results");
  command.footer(
      "Examples:\n"
      "  forge run train_canon_ac\n"
      "  forge run train_llama train_canon_ac --set train.max_steps=100\n"
      "  forge run --all -p canon --set profile=full\n"
      "  forge run train_canon_ac --set data.path=stories.txt\n"
      "  forge run train_canon_ac --set train.max_steps=600 --continue train_canon_ac-5a0c\n"
      "  forge run \"train_canon_a*\" --seeds 3            each with its own seed and the next "
      "two\n"
      "  forge run --table positions --seed 1,2,3         what a table needs\n"
      "  forge run train_llama --sweep optimizer.lr=3e-4,1e-3 --sweep train.batch_size=16,32\n"
      "  forge run --sweep learning_rates                 as sweeps/learning_rates.yaml declares\n"
      "  forge run --all --seeds 5 --dry-run              what that would take\n"
      "  forge run --all --seeds 5 --save-plan plan.json  the same, kept: forge run --plan "
      "plan.json\n"
      "  forge run --all --seeds 5 --detach --fail-fast   in the queue, without waiting for it\n"
      "  forge run --table positions --jobs 2             two at once\n"
      "  forge run train_canon_ac --backend pytorch\n"
      "\n"
      "Runs wait in the queue of the runs folder, which all commands share, until a device has "
      "room\n"
      "for them. A finished run is not repeated. Ctrl-C saves and stops, and the same command goes "
      "on from\n"
      "there; Ctrl-C twice stops now. A run goes on when forge is killed. Exit codes: 1 a run\n"
      "failed, 3 stopped, 4 the disk is full or fails.");
  add_configs_options(command, program, options->selection.configs);
  command.add_flag("--all", options->selection.all, "Every training config of the project");
  command.add_option("--table", options->selection.table, "The configs of a table of the project")
      .type_name("NAME");
  add_set_option(command, options->launch.overrides);
  command
      .add_option("--backend",
                  options->backend,
                  "The same as --set backend=NAME; 'forge backends' lists them")
      .type_name("NAME");
  command.add_option("--seed", options->selection.seeds, "Seeds: 1,2,3 or 1..5").type_name("SEEDS");
  command
      .add_option(
          "--seeds", options->selection.seed_count, "So many seeds, from the config's own on")
      .positive()
      .type_name("N");
  command
      .add_option(
          "--sweep",
          options->selection.sweeps,
          "Values of a key, one run for each, or a sweep of the project's folder sweeps; may "
          "be repeated: every combination")
      .type_name("PATH=A,B,…|NAME")
      .repeated();
  command.add_flag("--dry-run", options->dry_run, "Only print what would be run, and how long");
  command.add_flag("--probe",
                   options->plan.probe,
                   "--dry-run, and measure for a few seconds what no past run tells");
  command
      .add_option("--save-plan", options->plan.save, "--dry-run, and write the plan to this file")
      .type_name("FILE");
  command.add_option("--plan", options->saved_plan, "Execute this plan as it is")
      .existing_file()
      .type_name("FILE");
  command
      .add_option("--continue",
                  options->launch.continue_run,
                  "Go on from a checkpoint of this run, whose budget alone may differ")
      .type_name("RUN");
  command
      .add_option(
          "--jobs",
          options->conduct.jobs,
          "So many runs at once; without it one on each GPU, or one on the CPU. On a CPU each "
          "gets an equal share of the cores")
      .positive()
      .type_name("N");
  command.add_option("--priority", options->conduct.priority, "Runs of a larger one begin first")
      .type_name("N")
      .capture_default();
  command.add_flag(
      "--fail-fast", options->conduct.fail_fast, "After a run that failed begin no other");
  command.add_flag(
      "--detach", options->detach, "Leave them to themselves: 'forge status' shows them");
  command.add_flag("--force", options->launch.force, "Run again what is done");
  command.add_option("--device", options->launch.device, "auto, cpu, cuda or cuda:N")
      .capture_default();
  command.add_option("--threads", options->launch.threads, "CPU threads; 0: all cores")
      .non_negative()
      .capture_default();
  command.add_flag("--json", options->json, "Results as JSON");
  command.callback([&program, options] {
    if (!options->backend.empty())
      options->launch.overrides.push_back("backend=" + options->backend);
    program.action = [options](const Context& c) { return run_configs(c, *options); };
  });
}

}  // namespace forge::app
