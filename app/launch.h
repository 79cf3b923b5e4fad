#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/context.h"
#include "core/benchmark/measure.h"
#include "core/config/resolve.h"
#include "core/run/saved_plan.h"

namespace forge::app {

/// How configs are to be run.
struct LaunchOptions {
  std::vector<std::string> overrides;  ///< --set
  std::string device = "auto";
  int threads = 0;  ///< 0: all cores
  bool force = false;
  std::string continue_run;  ///< --continue: go on from a checkpoint of this run, ""
};

/// A config that is checked and may be run.
struct Launch {
  std::string label;  ///< what to call it: the config's name, and what a sweep changes
  config::ResolvedConfig resolved;
  run::BackendInfo backend;
  run::InitialWeights initial_weights;
  std::optional<run::SavedRun> saved;  ///< of a plan that is executed as it is
};

/// Resolves and checks a config for its backend on this machine. Starts nothing but, where that is
/// not known yet, the worker to ask what it would run on.
Launch check_launch(const Context& context,
                    const ChosenConfig& config,
                    const LaunchOptions& options);

/// The same for a run of a plan: what it says, whatever the templates say by now.
Launch check_launch(const Context& context,
                    const run::SavedRun& saved,
                    const LaunchOptions& options);

/// The launch's config as something to be measured; 0 steps: windows of about a second.
benchmark::Subject benchmark_subject(const Context& context,
                                     const Launch& launch,
                                     const LaunchOptions& options,
                                     int64_t window_steps = 0);

/// Prepares the data (with progress on stderr) and says what is left to do for the run.
struct PreparedLaunch {
  run::RunInputs inputs;
  run::PlannedRun planned;
};
PreparedLaunch prepare_launch(const Context& context,
                              const Launch& launch,
                              const LaunchOptions& options);

}  // namespace forge::app
