#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "app/commands.h"
#include "app/launch.h"
#include "app/run_report.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "app/watch.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/run/runs_dir.h"
#include "core/run/start.h"
#include "core/run/supervisor.h"
#include "core/run/variations.h"
#include "core/store/forecast.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

struct Options {
  std::vector<std::string> configs;
  bool all = false;
  std::string table;
  std::string seeds;   ///< "1,2,3" or "1..3", "": the config's own
  int seed_count = 0;  ///< as many from the config's own on; 0: not asked for
  std::vector<std::string> sweeps;
  std::string backend;  ///< "": the config's own
  bool dry_run = false;
  LaunchOptions launch;
  bool json = false;
};

/// What one run is made from.
struct Selected {
  ChosenConfig config;
  std::vector<run::Sweep> sweeps;  ///< that its selection brings along
};

std::vector<Selected> of_table(const Context& context, const std::string& name) {
  const project::Project project = context.project();
  const report::TableSpec table = read_table(project, name);
  std::vector<run::Sweep> sweeps;
  if (table.best_of) {
    sweeps.push_back({table.best_of->key, {}});
    for (const double value : table.best_of->values)
      sweeps.back().values.push_back(shortest(value));
  }
  std::vector<Selected> selected;
  for (const report::RowSpec& row : table.rows)
    selected.push_back(
        {context.chosen({project, project::config_of(project, row.config)}), sweeps});
  return selected;
}

std::vector<Selected> all_that_train(const Context& context) {
  const project::Project project = context.project();
  std::vector<Selected> selected;
  for (const project::Config& config : project.configs) {
    if (project::summarize(project, config, context.surroundings()).trains)
      selected.push_back({context.chosen({project, config}), {}});
  }
  if (selected.empty()) throw Error("project '" + project.path + "' has no training config");
  return selected;
}

/// The configs that were asked for, in that order.
std::vector<Selected> selected_configs(const Context& context, const Options& options) {
  const int ways = int{options.all} + int{!options.table.empty()} + int{!options.configs.empty()};
  if (ways != 1) {
    throw Error(
        "name the configs to run, or give --all for every training config of the project, or "
        "--table for those of a table",
        {},
        "'forge ls' lists them");
  }
  if (options.all) return all_that_train(context);
  if (!options.table.empty()) return of_table(context, options.table);
  std::vector<Selected> selected;
  for (const std::string& name : options.configs) {
    if (!project::is_pattern(name)) {
      selected.push_back({context.config(name), {}});
      continue;
    }
    const project::Project project = context.project();
    for (const project::Config& config : project::configs_matching(project, name))
      selected.push_back({context.chosen({project, config}), {}});
  }
  return selected;
}

/// The sweeps of the command line; a number of seeds counts from the one that the config has.
std::vector<run::Sweep> sweeps_of(const Options& options, int64_t own_seed) {
  std::vector<run::Sweep> sweeps;
  if (!options.seeds.empty()) sweeps.push_back(run::parse_seeds(options.seeds));
  if (options.seed_count > 0) sweeps.push_back(run::seeds_from(own_seed, options.seed_count));
  for (const std::string& text : options.sweeps) sweeps.push_back(run::parse_sweep(text));
  return sweeps;
}

/// A config's launches, one for each combination of what is swept.
std::vector<Launch> launches_of(const Context& context,
                                const Selected& selected,
                                const Options& options) {
  int64_t own_seed = 0;
  if (options.seed_count > 0)
    own_seed = check_launch(context, selected.config, options.launch).resolved.experiment.seed;
  std::vector<run::Sweep> sweeps = sweeps_of(options, own_seed);
  sweeps.insert(sweeps.end(), selected.sweeps.begin(), selected.sweeps.end());
  std::vector<Launch> launches;
  for (const run::Variation& variation : run::variations_of(sweeps)) {
    LaunchOptions changed = options.launch;
    changed.overrides.insert(changed.overrides.end(), variation.begin(), variation.end());
    launches.push_back(check_launch(context, selected.config, changed));
    if (!variation.empty()) launches.back().label += " (" + join(variation, ", ") + ")";
  }
  return launches;
}

/// All launches: first every config with its first seed or value, then with the next, so that what
/// is compared is there early. A run that two selections ask for is launched once.
std::vector<Launch> all_launches(const Context& context, const Options& options) {
  std::vector<std::vector<Launch>> of_configs;
  size_t most = 0;
  for (const Selected& selected : selected_configs(context, options)) {
    of_configs.push_back(launches_of(context, selected, options));
    most = std::max(most, of_configs.back().size());
  }
  std::vector<Launch> launches;
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < most; ++i) {
    for (std::vector<Launch>& of_config : of_configs) {
      if (i >= of_config.size()) continue;
      const config::ResolvedConfig& resolved = of_config[i].resolved;
      if (seen.insert({resolved.project + ":" + resolved.config_name, json_text(resolved.json)})
              .second)
        launches.push_back(std::move(of_config[i]));
    }
  }
  return launches;
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
  const std::string& label = launch.label;
  int supervisor = 0;
  switch (planned.action) {
    case run::Action::cached:
      std::cerr << label << ": done before, nothing to do (--force runs it again)\n";
      return planned.folder.status();
    case run::Action::running: std::cerr << label << ": already running, following it\n"; break;
    case run::Action::start:
    case run::Action::resume:
      std::cerr << label << ": " << what_it_does(launch, planned) << "\n";
      run::write_run_folder(planned, prepared.inputs);
      supervisor = run::start_supervisor(planned.folder, context.program());
  }
  const Interrupts interrupts;
  run::RunStatus status = watch(planned.folder, label, interrupts);
  // On a disk that is full to the last byte nothing but the exit code can say so.
  if (supervisor != 0 && run::wait_for_supervisor(supervisor) == run::supervised_storage)
    status.storage = true;
  return status;
}

void report_failure(const std::string& label,
                    const run::RunFolder& folder,
                    const run::RunStatus& status) {
  std::cerr << "error: " << label << " failed: " << status.reason << "\n";
  for (const std::string& line : status.stderr_lines) std::cerr << "    " << line << "\n";
  if (!status.hint.empty()) std::cerr << "hint: " << status.hint << "\n";
  std::cerr << "its whole log: " << shown_path(folder.stderr_file()) << "\n";
}

/// As the supervisor's own: a stop and a full disk have a code each.
int exit_code_of(const run::RunStatus& status) {
  if (status.state == run::RunState::completed) return run::supervised_completed;
  if (status.state == run::RunState::stopped) return run::supervised_stopped;
  return status.storage ? run::supervised_storage : run::supervised_failed;
}

void print_results(const std::vector<store::RunSummary>& runs,
                   const store::ResultStore& store,
                   const std::filesystem::path& runs_dir,
                   bool json) {
  const bool colour = use_colour(STDOUT_FILENO);
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const store::RunSummary& run : runs) list.push_back(to_json(run));
    std::cout << json_text(list, 2) << "\n";
  } else if (runs.size() == 1) {
    std::cout << result_text(
        runs[0], store.config(runs[0].id), shown_path(runs_dir / runs[0].id), colour);
  } else {
    std::cout << result_table(runs, colour);
  }
}

/// "10 runs: 8 new, 2 cached; about 3m 20s, judged by the newest runs like them".
std::string plan_summary(const std::map<run::Action, int>& counts, double seconds, int unknown) {
  std::vector<std::string> parts;
  int all = 0, to_do = 0;
  for (const auto& [action, count] : counts) {
    parts.push_back(std::to_string(count) + " " + name_of(action));
    all += count;
    if (action != run::Action::cached) to_do += count;
  }
  std::string text = std::to_string(all) + (all == 1 ? " run: " : " runs: ") + join(parts, ", ");
  if (to_do == 0) return text;
  if (unknown == to_do) return text + "; no past run like them tells how long";
  text += "; about " + human_duration(seconds) + ", judged by the newest runs like them";
  if (unknown > 0) text += ", without " + std::to_string(unknown) + " that no run is like";
  return text;
}

/// What would be done, without doing it.
int print_plan(const Context& context,
               const std::vector<Launch>& launches,
               const Options& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::optional<store::ResultStore> store;
  if (std::filesystem::exists(runs_dir)) {
    store.emplace(store::store_path(runs_dir));
    store->sync(runs_dir);
  }
  const std::vector<store::RunSummary> past =
      store ? store->runs() : std::vector<store::RunSummary>();
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> lines = {{"Run", "What", "Steps", "Time", "Memory"}};
  double seconds = 0;
  int unknown = 0;
  std::map<run::Action, int> counts;
  for (const Launch& launch : launches) {
    const PreparedLaunch prepared = prepare_launch(context, launch, options.launch);
    const store::Forecast forecast = store::forecast(past, prepared.planned, prepared.inputs);
    const bool to_do = prepared.planned.action != run::Action::cached;
    ++counts[prepared.planned.action];
    seconds += forecast.seconds.value_or(0);
    unknown += to_do && !forecast.seconds;
    const std::string time = forecast.seconds ? human_duration(*forecast.seconds) : "?";
    lines.push_back({launch.label,
                     name_of(prepared.planned.action),
                     with_thousands(forecast.steps),
                     to_do ? time : "—",
                     forecast.memory_bytes ? human_bytes(double(*forecast.memory_bytes)) : "?"});
    nlohmann::json entry = {{"run", prepared.planned.record.id},
                            {"config", launch.resolved.config_name},
                            {"label", launch.label},
                            {"action", name_of(prepared.planned.action)},
                            {"steps", forecast.steps},
                            {"seconds", nullptr},
                            {"memory_bytes", nullptr}};
    if (forecast.seconds) entry["seconds"] = *forecast.seconds;
    if (forecast.memory_bytes) entry["memory_bytes"] = *forecast.memory_bytes;
    list.push_back(std::move(entry));
  }
  if (options.json) {
    std::cout << json_text(list, 2) << "\n";
    return 0;
  }
  std::cout << aligned(lines, {2, 3, 4}) << "\n" << plan_summary(counts, seconds, unknown) << "\n";
  return 0;
}

int run_configs(const Context& context, const Options& options) {
  // Whatever can be wrong is found before the first run starts.
  const std::vector<Launch> launches = all_launches(context, options);
  if (options.dry_run) return print_plan(context, launches, options);
  const std::filesystem::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  store::ResultStore store(store::store_path(runs_dir));

  std::vector<store::RunSummary> results;
  bool interrupted = false;
  int worst = run::supervised_completed;
  for (const Launch& launch : launches) {
    if (interrupted) {
      std::cerr << launch.label << ": not started\n";
      continue;
    }
    const PreparedLaunch prepared = prepare_launch(context, launch, options.launch);
    const run::RunStatus status = carry_out(context, launch, prepared);
    if (status.state == run::RunState::failed)
      report_failure(launch.label, prepared.planned.folder, status);
    worst = std::max(worst, exit_code_of(status));
    interrupted = status.state == run::RunState::stopped;
    for (const std::string& warning : store.sync(runs_dir).warnings)
      std::cerr << "warning: " << warning << "\n";
    if (auto summary = store.run(prepared.planned.record.id))
      results.push_back(std::move(*summary));
  }
  if (interrupted) std::cerr << "the same command goes on from the saved checkpoint\n";
  print_results(results, store, runs_dir, options.json);
  return worst;
}

}  // namespace

void add_run(const Command& app, Program& program) {
  auto options = std::make_shared<Options>();
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
      "  forge run --all --seeds 5 --dry-run              what that would take\n"
      "  forge run train_canon_ac --backend pytorch\n"
      "\n"
      "A finished run is not repeated. Ctrl-C saves and stops, and the same command goes on from\n"
      "there; Ctrl-C twice stops now. A run goes on when forge is killed. Exit codes: 1 a run\n"
      "failed, 3 stopped, 4 the disk is full or fails.");
  add_configs_options(command, program, options->configs);
  command.add_flag("--all", options->all, "Every training config of the project");
  command.add_option("--table", options->table, "The configs of a table of the project")
      .type_name("NAME");
  add_set_option(command, options->launch.overrides);
  command
      .add_option("--backend",
                  options->backend,
                  "The same as --set backend=NAME; 'forge backends' lists them")
      .type_name("NAME");
  command.add_option("--seed", options->seeds, "Seeds: 1,2,3 or 1..5").type_name("SEEDS");
  command.add_option("--seeds", options->seed_count, "So many seeds, from the config's own on")
      .positive()
      .type_name("N");
  command
      .add_option("--sweep",
                  options->sweeps,
                  "Values of a key, one run for each; may be repeated: every combination")
      .type_name("PATH=A,B,…")
      .repeated();
  command.add_flag("--dry-run", options->dry_run, "Only print what would be run, and how long");
  command
      .add_option("--continue",
                  options->launch.continue_run,
                  "Go on from a checkpoint of this run, whose budget alone may differ")
      .type_name("RUN");
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
