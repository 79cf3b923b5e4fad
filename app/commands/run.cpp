#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "app/commands.h"
#include "app/launch.h"
#include "app/run_report.h"
#include "app/terminal.h"
#include "app/watch.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/runs_dir.h"
#include "core/run/start.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

struct Options {
  std::vector<std::string> configs;
  bool all = false;
  LaunchOptions launch;
  bool json = false;
};

/// The configs that were asked for, in that order; each once.
std::vector<ChosenConfig> selected_configs(const Context& context, const Options& options) {
  if (options.all != options.configs.empty()) {
    throw Error("name the configs to run, or give --all for every training config of the project",
                {},
                "'forge ls' lists them");
  }
  std::vector<ChosenConfig> selected;
  for (const std::string& name : options.configs) selected.push_back(context.config(name));
  if (!options.all) return selected;
  const project::Project project = context.project();
  for (const project::Config& config : project.configs) {
    if (project::summarize(project, config, context.surroundings()).trains)
      selected.push_back(context.chosen({project, config}));
  }
  if (selected.empty()) throw Error("project '" + project.path + "' has no training config");
  return selected;
}

std::string what_it_does(const Launch& launch, const run::PlannedRun& planned) {
  const config::TrainConfig& train = launch.resolved.experiment.train;
  const protocol::Environment& environment = launch.backend.environment;
  std::string text = planned.action == run::Action::resume ? "resuming" : "starting";
  text += ", profile " + launch.resolved.experiment.profile + ": " +
          with_thousands(train.max_steps) + " steps of " + std::to_string(train.batch_size) +
          " × " + std::to_string(train.seq_len) + " tokens on " + environment.device_name;
  if (environment.device_type == "cpu")
    text += ", " + std::to_string(environment.threads) + " threads";
  return text;
}

/// Brings a run to its end, from wherever it stands.
run::RunStatus carry_out(const Context& context,
                         const Launch& launch,
                         const PreparedLaunch& prepared) {
  const run::PlannedRun& planned = prepared.planned;
  const std::string& label = launch.resolved.config_name;
  switch (planned.action) {
    case run::Action::cached:
      std::cerr << label << ": done before, nothing to do (--force runs it again)\n";
      return planned.folder.status();
    case run::Action::running: std::cerr << label << ": already running, following it\n"; break;
    case run::Action::start:
    case run::Action::resume:
      std::cerr << label << ": " << what_it_does(launch, planned) << "\n";
      run::write_run_folder(planned, prepared.inputs);
      run::start_supervisor(planned.folder, context.program());
  }
  const Interrupts interrupts;
  return watch(planned.folder, label, interrupts);
}

void report_failure(const std::string& label,
                    const run::RunFolder& folder,
                    const run::RunStatus& status) {
  std::cerr << "error: " << label << " failed: " << status.reason << "\n";
  for (const std::string& line : status.stderr_lines) std::cerr << "    " << line << "\n";
  if (!status.hint.empty()) std::cerr << "hint: " << status.hint << "\n";
  std::cerr << "its whole log: " << shown_path(folder.stderr_file()) << "\n";
}

/// A full disk has a code of its own.
ExitCode exit_code_of(const run::RunStatus& status) {
  if (status.state == run::RunState::completed) return ExitCode::done;
  return status.exit_status == protocol::exit_storage ? ExitCode::storage : ExitCode::failed;
}

void print_results(const std::vector<store::RunSummary>& runs,
                   const store::ResultStore& store,
                   const std::filesystem::path& runs_dir,
                   bool json) {
  const bool colour = use_colour(STDOUT_FILENO);
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const store::RunSummary& run : runs) list.push_back(to_json(run));
    std::cout << list.dump(2) << "\n";
  } else if (runs.size() == 1) {
    std::cout << result_text(
        runs[0], store.config(runs[0].id), shown_path(runs_dir / runs[0].id), colour);
  } else {
    std::cout << result_table(runs, colour);
  }
}

int run_configs(const Context& context, const Options& options) {
  // Whatever can be wrong is found before the first run starts.
  std::vector<Launch> launches;
  for (const ChosenConfig& config : selected_configs(context, options)) {
    launches.push_back(check_launch(context, config, options.launch));
  }
  const std::filesystem::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  store::ResultStore store(store::store_path(runs_dir));

  std::vector<store::RunSummary> results;
  bool interrupted = false;
  ExitCode worst = ExitCode::done;
  for (const Launch& launch : launches) {
    if (interrupted) {
      std::cerr << launch.resolved.config_name << ": not started\n";
      continue;
    }
    const PreparedLaunch prepared = prepare_launch(context, launch, options.launch);
    const run::RunStatus status = carry_out(context, launch, prepared);
    if (status.state == run::RunState::failed) {
      report_failure(launch.resolved.config_name, prepared.planned.folder, status);
    }
    worst = std::max(worst, exit_code_of(status));
    interrupted = status.state == run::RunState::stopped;
    for (const std::string& warning : store.sync(runs_dir).warnings)
      std::cerr << "warning: " << warning << "\n";
    if (auto summary = store.run(prepared.planned.record.id))
      results.push_back(std::move(*summary));
  }
  if (interrupted) std::cerr << "the same command goes on from the saved checkpoint\n";
  print_results(results, store, runs_dir, options.json);
  return static_cast<int>(worst);
}

}  // namespace

void add_run(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Train configs and print their results");
  command->footer(
      "Examples:\n"
      "  forge run train_canon_ac\n"
      "  forge run train_llama train_canon_ac --set train.max_steps=100\n"
      "  forge run --all -p canon --set profile=full\n"
      "  forge run train_canon_ac --set data.path=stories.txt\n"
      "  forge run train_canon_ac --set train.max_steps=600 --continue train_canon_ac-5a0c\n"
      "\n"
      "A finished run is not repeated. Ctrl-C saves and stops, and the same command goes on from\n"
      "there; Ctrl-C twice stops now. A run goes on when forge is killed.");
  add_configs_options(*command, program, options->configs);
  command->add_flag("--all", options->all, "Every training config of the project");
  add_set_option(*command, options->launch.overrides);
  command
      ->add_option("--continue",
                   options->launch.continue_run,
                   "Go on from a checkpoint of this run, whose budget alone may differ")
      ->type_name("RUN");
  command->add_flag("--force", options->launch.force, "Run again what is done");
  command->add_option("--device", options->launch.device, "auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  command->add_option("--threads", options->launch.threads, "CPU threads; 0: all cores")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Results as JSON");
  command->callback([&program, options] {
    program.action = [options](const Context& c) { return run_configs(c, *options); };
  });
}

}  // namespace forge::app
