#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "core/config/resolve.h"
#include "core/run/plan.h"

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
};

/// Resolves and checks a config for its backend on this machine. Starts nothing but, where that is
/// not known yet, the worker to ask what it would run on.
Launch check_launch(const Context& context,
                    const ChosenConfig& config,
                    const LaunchOptions& options);

/// Prepares the data (with progress on stderr) and says what is left to do for the run.
struct PreparedLaunch {
  run::RunInputs inputs;
  run::PlannedRun planned;
};
PreparedLaunch prepare_launch(const Context& context,
                              const Launch& launch,
                              const LaunchOptions& options);

}  // namespace forge::app
