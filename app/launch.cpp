#include "app/launch.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "app/process_options.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/own_blocks.h"
#include "core/data/rows/prepare.h"
#include "core/run/backend_support.h"
#include "core/run/open_model.h"
#include "core/run/queue/queue.h"
#include "core/run/request.h"
#include "core/worker/job.h"

namespace forge::app {
namespace {

/// Initial weights of the right shapes may still come from a different model.
void warn_of_differences(const CheckedRun& run, const std::string& tokenizer_fingerprint) {
  const run::InitialWeights& weights = run.initial_weights;
  const std::string& label = run.label;
  for (const std::string& note : weights.notes)
    std::cerr << "warning: " << label << ": " << note << "\n";
  const std::string& theirs = weights.tokenizer_fingerprint;
  if (theirs.empty() || theirs == tokenizer_fingerprint) return;
  std::cerr << "warning: " << tables::printable(label)
            << ": the initial weights were trained with another tokenizer; tokenizer.path names "
               "theirs\n";
}

/// Throws the obstacles of a run that no device removes, before a worker is started to list
/// devices.
void require_some_device(const config::Document& document,
                         const config::ResolvedConfig& resolved,
                         config::ResolveOptions options) {
  if (resolved.obstacles.empty()) return;
  options.backend_has_gpu = !options.backend_has_gpu;
  if (!config::resolve(document, options).obstacles.empty()) config::require_no_obstacles(resolved);
}

/// Blocks in Python choose their backend, which is said once.
void say_chosen_backend(const CheckedRun& run) {
  const auto origin = run.resolved.origins.find("backend");
  if (origin == run.resolved.origins.end()) return;
  const config::Setting& setting = origin->second.set_by;
  if (!config::has_own_blocks(run.resolved.experiment.model) || setting.derived_from.empty())
    return;
  std::vector<std::string> names;
  for (const auto& [name, block] : run.resolved.experiment.model.blocks) names.push_back(name);
  print_once("backend pytorch, which computes blocks in Python: " + join(names, ", "));
}

void require_gpus(const CheckedRun& run, const LaunchOptions& options) {
  const std::string& type = run.backend.environment.device_type;
  const int processes = run.resolved.experiment.parallel.processes.count;
  if (!options.needs_gpus || processes <= 1 || type != "cpu") return;
  const std::string count = std::to_string(processes);
  throw Error("--gpus " + count + " asks for GPUs, and backend " + run.backend.hello.backend +
                  " runs on " + type + " here",
              "--processes " + count + " asks for processes on the CPU");
}

/// Checks that the backend can train the config, and finds its initial weights.
void check_backend(const Context& context, CheckedRun& run, const LaunchOptions& options) {
  run::require_device(options.device, run.backend);
  run::require_job(worker::Job::train, run.backend);
  run::require_supported(run.resolved.json, run.resolved.origins, run.backend);
  require_gpus(run, options);
  run::require_processes(run.resolved.experiment, run.resolved.origins, run.backend);
  run.initial_weights = context.initial_weights(run.resolved);
}

/// How many devices parallel.processes: auto may take: 1 on a CPU, and where the backend trains by
/// a single process, unless the user asked for all GPUs.
int devices_for_processes(const worker::BackendInfo& backend, const LaunchOptions& options) {
  if (!run::trains_by_several_processes(backend) && !options.needs_gpus) return 1;
  const queue::ResourceRequest demand =
      queue::resource_request(backend.environment, options.device, 0, 1);
  return static_cast<int>(demand.devices.size());
}

}  // namespace

void settle_for_backend(const Context& context,
                        const worker::BackendInfo& backend,
                        const LaunchOptions& options,
                        config::ResolvedConfig& resolved) {
  config::require_no_obstacles(resolved);
  config::settle_for_device(resolved, backend.environment.device_type);
  config::settle_processes(resolved, devices_for_processes(backend, options));
  context.describe_own_blocks(resolved);
}

CheckedRun check_config(const Context& context,
                        const config::Document& document,
                        const LaunchOptions& options) {
  config::ResolveOptions resolve_options = context.resolve_options(options.overrides);
  resolve_options.block_texts = options.block_texts;
  CheckedRun run;
  run.label = document.config_name;
  run.resolved = config::resolve(document, resolve_options);
  require_some_device(document, run.resolved, resolve_options);
  // The config names the backend, and what the backend runs on decides what profile `auto` is.
  run.backend = context.describe_backend(run.resolved.experiment, options.device, options.threads);
  if (run.backend.environment.device_type != "cpu") {
    resolve_options.backend_has_gpu = true;
    run.resolved = config::resolve(document, resolve_options);
  }
  require_training(run.resolved, "it has nothing to train");
  say_chosen_backend(run);
  settle_for_backend(context, run.backend, options, run.resolved);
  check_backend(context, run, options);
  return run;
}

CheckedRun check_config(const Context& context,
                        const run::SavedRun& saved,
                        const LaunchOptions& options) {
  config::ResolvedConfig resolved;
  resolved.project = saved.project;
  // It goes into the runs folder of this workspace, whoever's the plan is.
  const std::string here = context.workspace_with(saved.project);
  resolved.workspace = here.empty() ? saved.workspace : here;
  resolved.config_name = saved.config;
  resolved.trains = true;
  resolved.json = context.find_files(saved.experiment, saved.workspace, saved.project);
  resolved.experiment = config::experiment_from_json(resolved.json);
  CheckedRun run{saved.label,
                 std::move(resolved),
                 {},
                 {},
                 saved,
                 saved.planned_seeds,
                 saved.planned_claims,
                 saved.planned_tables,
                 saved.planned_config,
                 saved.drawn_order};
  run.backend = context.describe_backend(run.resolved.experiment, options.device, options.threads);
  check_backend(context, run, options);
  return run;
}

benchmark::BenchTarget bench_target(const Context& context,
                                    const CheckedRun& run,
                                    const LaunchOptions& options,
                                    int64_t window_steps) {
  run::require_job(worker::Job::bench, run.backend);
  benchmark::BenchTarget target;
  target.name = run.resolved.config_name;
  target.request.job = worker::Job::bench;
  target.request.experiment = run.resolved.json;
  target.request.window_steps = window_steps;
  target.request.device = options.device;
  target.request.threads = options.threads;
  target.command = context.backend(run.resolved.experiment)->command(target.request);
  target.processes = std::max(1, run.resolved.experiment.parallel.processes.count);
  target.devices = devices_of_processes(target.processes, options.device, run.backend.environment);
  return target;
}

namespace {

/// What the data of a plan's run was when the plan was made; nothing of another run.
data::DataFingerprints known_data(const CheckedRun& run) {
  if (!run.saved) return {};
  return {run.saved->identity.data_fingerprint, run.saved->identity.tokenizer_fingerprint};
}

/// All inputs that decide which run it is, but those that follow from the data.
run::RunInputs inputs_without_data(const Context& context,
                                   const CheckedRun& run,
                                   const LaunchOptions& options) {
  const config::ResolvedConfig& resolved = run.resolved;
  run::RunInputs inputs;
  inputs.project = resolved.project;
  inputs.workspace = resolved.workspace;
  inputs.config = resolved.config_name;
  inputs.command = context.command_line();
  inputs.revision = run.saved ? run.saved->revision : context.revision();
  inputs.experiment = resolved.json;
  inputs.planned_seeds = run.planned_seeds;
  inputs.planned_claims = run.planned_claims;
  inputs.planned_tables = run.planned_tables;
  inputs.planned_config = run.planned_config;
  inputs.drawn_order = run.drawn_order;
  inputs.initial_weights = run.initial_weights;
  inputs.device = options.device;
  inputs.backend = run.backend;
  inputs.program = context.program_hash(resolved.experiment);
  return inputs;
}

/// Of a run that continues another one, of which an older one told other losses.
void warn_of_repetition(const std::string& label,
                        const std::string& continued,
                        const std::string& repeated) {
  if (repeated.empty()) return;
  print_new_warnings({label + ": " + continued + " repeats " + repeated +
                      " with other losses, and a seed's first run counts: tables leave out what "
                      "continues " +
                      continued});
}

run::PlannedRun plan(const Context& context,
                     const CheckedRun& run,
                     const LaunchOptions& options,
                     run::RunInputs& inputs) {
  warn_of_differences(run, inputs.tokenizer_fingerprint);
  run::PlannedRun planned =
      run.saved ? run::plan_as_saved(inputs, *run.saved, context.runs_dir())
                : run::plan_run(inputs, context.runs_dir(), options.force, options.taken);
  if (options.continue_run.empty()) return planned;
  const run::RunFolder other = context.find_run(options.continue_run);
  if (!run::begins_from(planned, other)) return planned;
  inputs.continue_from = run::find_continue_checkpoint(
      other, planned.record.identity, inputs.experiment, inputs.train_tokens, context.runs_dir());
  warn_of_repetition(run.label, other.id(), inputs.continue_from.repeats);
  print_new_warnings(texts_of(inputs.continue_from.damaged, [&](const std::string& problem) {
    return run.label + ": " + problem + "; it goes on from step " +
           std::to_string(inputs.continue_from.step);
  }));
  return planned;
}

}  // namespace

PreparedRun prepare_run(const Context& context,
                        const CheckedRun& run,
                        const LaunchOptions& options) {
  const data::PreparedData data =
      data::prepare(run.resolved.experiment,
                    user_cache_dir(),
                    interruptible(ProgressLine("preparing data").phase_reporter()),
                    false,
                    known_data(run));
  print_new_warnings(data.warnings);
  run::RunInputs inputs = inputs_without_data(context, run, options);
  inputs.origins = run.saved ? run.saved->origins : config::to_json(run.resolved.origins);
  inputs.data_fingerprint = data.data_fingerprint;
  inputs.tokenizer_fingerprint = data.tokenizer_fingerprint;
  inputs.tokenizer = data.tokenizer;
  inputs.train_tokens = run::token_sources(data, data.train);
  inputs.evaluation_tokens = run::token_sources(data, data.evaluation);
  inputs.validation_tokens = run::token_sources(data, data.validation);
  inputs.evaluation_text = data.evaluation_text;
  const run::PlannedRun planned = plan(context, run, options, inputs);
  return {std::move(inputs), planned};
}

ForeseenRun foresee_run(const Context& context,
                        const CheckedRun& run,
                        const LaunchOptions& options) {
  ForeseenRun foreseen{inputs_without_data(context, run, options), {}};
  const auto& fingerprints = context.data_fingerprints(run.resolved, known_data(run));
  if (!fingerprints) return foreseen;
  foreseen.inputs.data_fingerprint = fingerprints->data;
  foreseen.inputs.tokenizer_fingerprint = fingerprints->tokenizer;
  foreseen.planned = plan(context, run, options, foreseen.inputs);
  return foreseen;
}

}  // namespace forge::app
