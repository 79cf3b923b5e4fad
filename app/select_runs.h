#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/launch.h"
#include "core/run/halving.h"
#include "core/run/sweep.h"

/// From the options of a command line to runs: configs, sweeps, seeds, tables.
namespace forge::app {

/// The runs that a command line asks for.
struct RunSelection {
  std::vector<std::string> configs;  ///< names and patterns
  bool all = false;                  ///< every training config of the project
  std::string table;                 ///< the configs of this table, ""
  std::string seeds;                 ///< "1,2,3" or "1..3", "": the config's own
  int seed_count = 0;  ///< this many, from the one in `seeds` or the config's on; 0: not given
  std::vector<std::string> sweeps;  ///< "optimizer.lr=1e-3,3e-3", or one that the project declares
  int sample_count = 0;             ///< of keys whose values are drawn; 0: as the sweeps say
  std::string sample_seed;          ///< of the draws, "": as the sweeps say
  int halving = 0;                  ///< --halving: step of the first rung, 0: as the sweeps say
  std::vector<run::Overrides> samples;  ///< what was drawn, which every config is trained with
};

/// Throws Error where --set sets a key that `other`, another option, sets too: one of the two would
/// be dropped.
void require_not_set(const std::vector<std::string>& overrides,
                     const std::string& key,
                     const std::string& other);

/// Names of the sweeps that a project declares: the files sweeps/*.yaml, sorted.
std::vector<std::string> sweep_names(const project::Project& project);

/// A config with the sweeps that its table declares.
struct SelectedConfig {
  project::NamedConfig config;
  std::vector<run::Sweep> sweeps;
};

/// The runs of these configs, one for each combination of the sweeps, the seeds of `selection` and
/// `swept`, which all of them have: first every config with its first seed or value, then with the
/// next, so that comparable runs complete early. A run that is selected twice is listed once.
std::vector<CheckedRun> check_configs(const Context& context,
                                      const std::vector<SelectedConfig>& configs,
                                      const RunSelection& selection,
                                      const std::vector<run::Sweep>& swept,
                                      const LaunchOptions& options);

/// Runs that can be made now.
struct SelectedRuns {
  std::vector<CheckedRun> runs;
  std::string later;  ///< what can be made when these are completed, in words; "": nothing
  std::optional<run::HalvingRule> halving = {};  ///< how they are compared on their way
};

/// The runs that a command line asks for.
SelectedRuns check_selected_configs(const Context& context,
                                    const RunSelection& selection,
                                    const LaunchOptions& options);

}  // namespace forge::app
