#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/context.h"
#include "core/config/resolve.h"
#include "core/results/benchmark/benchmark.h"
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
  worker::BackendInfo backend;
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
benchmark::BenchTarget benchmark_subject(const Context& context,
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

/// Which runs a command line asks for.
struct Selection {
  std::vector<std::string> configs;  ///< names and patterns
  bool all = false;                  ///< every training config of the project
  std::string table;                 ///< what this table shows, ""
  std::string seeds;                 ///< "1,2,3" or "1..3", "": the config's own
  int seed_count = 0;                ///< as many from the config's own on; 0: not asked for
  std::vector<std::string> sweeps;   ///< "optimizer.lr=1e-3,3e-3", or one that the project declares
};

/// Names of the sweeps that a project declares: the files sweeps/*.yaml, sorted.
std::vector<std::string> sweep_names(const project::Project& project);

/// All launches: first every config with its first seed or value, then with the next, so that what
/// is compared is there early. A run that two selections ask for is launched once.
std::vector<Launch> selected_launches(const Context& context,
                                      const Selection& selection,
                                      const LaunchOptions& options);

struct PlanOptions {
  bool probe = false;  ///< measure for a few seconds what no past run tells
  std::string save;    ///< file to write the plan to, "": none
  bool json = false;
};

/// Prints what would be done for the launches, without doing it: what is left of each, and how long
/// that will take and how much memory, as far as past runs or a probe tell. Writes the plan where
/// that was asked for.
void print_plan(const Context& context,
                const std::vector<Launch>& launches,
                const LaunchOptions& launch_options,
                const PlanOptions& options);

}  // namespace forge::app
