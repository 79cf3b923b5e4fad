#include "app/launch.h"

#include <iostream>

#include "app/progress_line.h"
#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/data/prepare.h"
#include "core/run/job.h"
#include "core/run/local_launcher.h"
#include "core/run/run_model.h"
#include "core/run/runs_dir.h"
#include "core/run/supported.h"
#include "core/run/token_sources.h"

namespace forge::app {
namespace {

/// Weights that fit may still have meant something else.
void warn_of_differences(const Launch& launch, const data::PreparedData& data) {
  const run::InitialWeights& weights = launch.initial_weights;
  const std::string& label = launch.label;
  for (const std::string& note : weights.notes)
    std::cerr << "warning: " << label << ": " << note << "\n";
  const std::string& theirs = weights.tokenizer_fingerprint;
  if (theirs.empty() || theirs == data.tokenizer_fingerprint) return;
  std::cerr << "warning: " << label
            << ": the initial weights were trained with another tokenizer; tokenizer.path names "
               "theirs\n";
}

/// Says what hinders the run on any device, before a worker is asked on which one it would be.
void refuse_what_cannot_run_here(const ChosenConfig& config,
                                 const config::ResolvedConfig& resolved,
                                 config::ResolveOptions options) {
  if (resolved.obstacles.empty()) return;
  options.backend_has_gpu = !options.backend_has_gpu;
  const config::ResolvedConfig elsewhere =
      config::resolve(config.project, config.config.name, options);
  if (!elsewhere.obstacles.empty()) config::require_no_obstacles(resolved);
}

run::BackendInfo describe_backend(const Context& context,
                                  const config::Experiment& experiment,
                                  const LaunchOptions& options) {
  run::LocalLauncher launcher;
  return context.backend(experiment)->describe(launcher, options.device, options.threads);
}

/// Checks that the backend can do it, and finds the weights that it begins from.
void complete(const Context& context, Launch& launch) {
  run::require_job(protocol::Job::train, launch.backend);
  run::require_supported(launch.resolved.json, launch.resolved.origins, launch.backend);
  launch.initial_weights =
      run::find_initial_weights(launch.resolved.experiment, context.runs_dir());
}

}  // namespace

Launch check_launch(const Context& context,
                    const ChosenConfig& config,
                    const LaunchOptions& options) {
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.surroundings = context.surroundings();
  resolve_options.variables = config.variables;
  Launch launch{config.config.name,
                config::resolve(config.project, config.config.name, resolve_options),
                {},
                {},
                {}};
  refuse_what_cannot_run_here(config, launch.resolved, resolve_options);
  // The config names the backend, and what the backend runs on decides what profile `auto` is.
  launch.backend = describe_backend(context, launch.resolved.experiment, options);
  if (launch.backend.environment.device_type != "cpu") {
    resolve_options.backend_has_gpu = true;
    launch.resolved = config::resolve(config.project, config.config.name, resolve_options);
  }
  if (!launch.resolved.trains) {
    throw Error(
        "'" + config.config.name + "' is a model for other configs to use: it has nothing to train",
        {},
        "run a training config; 'forge ls' lists them");
  }
  config::require_no_obstacles(launch.resolved);
  config::settle_for_device(launch.resolved, launch.backend.environment.device_type);
  complete(context, launch);
  return launch;
}

Launch check_launch(const Context& context,
                    const run::SavedRun& saved,
                    const LaunchOptions& options) {
  config::ResolvedConfig resolved;
  resolved.project = saved.project;
  resolved.config_name = saved.config;
  resolved.trains = true;
  resolved.experiment = config::experiment_from_json(saved.experiment);
  resolved.json = saved.experiment;
  Launch launch{saved.label, std::move(resolved), {}, {}, saved};
  launch.backend = describe_backend(context, launch.resolved.experiment, options);
  complete(context, launch);
  return launch;
}

benchmark::Subject benchmark_subject(const Context& context,
                                     const Launch& launch,
                                     const LaunchOptions& options,
                                     int64_t window_steps) {
  run::require_job(protocol::Job::bench, launch.backend);
  benchmark::Subject subject;
  subject.name = launch.resolved.config_name;
  subject.request.job = protocol::Job::bench;
  subject.request.experiment = launch.resolved.json;
  subject.request.window_steps = window_steps;
  subject.request.device = options.device;
  subject.request.threads = options.threads;
  subject.command = context.backend(launch.resolved.experiment)->command(subject.request);
  return subject;
}

PreparedLaunch prepare_launch(const Context& context,
                              const Launch& launch,
                              const LaunchOptions& options) {
  const config::ResolvedConfig& resolved = launch.resolved;
  data::PreparedData data;
  {
    ProgressLine line("preparing data");
    data = data::prepare(
        resolved.experiment, user_cache_dir(), [&](double fraction, const std::string& phase) {
          line.show_phase(fraction, phase);
        });
  }
  warn_of_differences(launch, data);
  run::LocalLauncher launcher;
  run::RunInputs inputs;
  inputs.project = resolved.project;
  inputs.config = resolved.config_name;
  inputs.command = context.command_line();
  inputs.revision =
      launch.saved ? launch.saved->revision : run::git_revision(launcher, context.workspace().root);
  inputs.experiment = resolved.json;
  inputs.origins = launch.saved ? launch.saved->origins : config::to_json(resolved.origins);
  inputs.data_fingerprint = data.data_fingerprint;
  inputs.tokenizer_fingerprint = data.tokenizer_fingerprint;
  inputs.tokenizer = data.tokenizer;
  inputs.initial_weights = launch.initial_weights;
  inputs.train_tokens = run::training_sources(data);
  inputs.evaluation_tokens = run::evaluation_sources(data);
  inputs.selection_tokens = run::selection_sources(data);
  inputs.device = options.device;
  inputs.backend = launch.backend;
  const run::PlannedRun planned =
      launch.saved ? run::plan_as_saved(inputs, *launch.saved, context.runs_dir())
                   : run::plan_run(inputs, context.runs_dir(), options.force);
  if (!options.continue_run.empty() && planned.action == run::Action::start) {
    inputs.continuation =
        run::find_continuation(run::named_run(context.runs_dir(), options.continue_run),
                               planned.record.identity,
                               inputs.experiment);
  }
  return {std::move(inputs), planned};
}

}  // namespace forge::app
