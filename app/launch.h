#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/context.h"
#include "core/base/error.h"
#include "core/config/resolve.h"
#include "core/results/benchmark/benchmark.h"
#include "core/run/halving.h"
#include "core/run/plan.h"
#include "core/run/sweep.h"

namespace forge::app {

/// Options of every run that a command line asks for.
struct LaunchOptions {
  std::vector<std::string> overrides;  ///< --set
  std::string device = "auto";
  int threads = 0;          ///< 0: all cores
  bool needs_gpus = false;  ///< --gpus: several processes are to have a GPU each
  bool force = false;
  std::string continue_run;        ///< --continue: start from a checkpoint of this run, ""
  std::vector<std::string> taken;  ///< ids of other runs of the same plan
  /// Of all these runs.
  std::shared_ptr<config::BlockTexts> block_texts = std::make_shared<config::BlockTexts>();
};

/// A config that is checked and may be run.
struct CheckedRun {
  std::string label;  ///< the config's name, with the keys that a sweep changes
  config::ResolvedConfig resolved;
  worker::BackendInfo backend;
  run::InitialWeights initial_weights;
  std::optional<run::SavedRun> saved;       ///< of a plan given by --plan
  std::vector<int64_t> planned_seeds;       ///< with which the command trains this config
  std::vector<std::string> planned_claims;  ///< of the project's tables, about this config
  std::optional<std::map<std::string, std::string>> planned_tables =
      {};                           ///< those with a row of it (run::RunRecord)
  std::string planned_config = {};  ///< of the config by itself (run::RunRecord)
  std::string drawn_order = {};     ///< run::RunRecord
  int64_t place = 0;                ///< among the runs of its command, as they are to be trained
};

/// Resolves and checks a config for its backend on this machine. Starts a worker at most to list
/// its devices.
CheckedRun check_config(const Context& context,
                        const config::Document& document,
                        const LaunchOptions& options);

/// The same for a run of a saved plan, whose config is complete.
CheckedRun check_config(const Context& context,
                        const run::SavedRun& saved,
                        const LaunchOptions& options);

/// The run's config for a benchmark; 0 steps: windows of about a second.
benchmark::BenchTarget bench_target(const Context& context,
                                    const CheckedRun& run,
                                    const LaunchOptions& options,
                                    int64_t window_steps = 0);

/// A run with its data, and what is left to do for it.
struct PreparedRun {
  run::RunInputs inputs;
  run::PlannedRun planned;
};

/// Prepares the data, with progress on stderr.
PreparedRun prepare_run(const Context& context,
                        const CheckedRun& run,
                        const LaunchOptions& options);

/// A run as a plan shows it.
struct ForeseenRun {
  run::RunInputs inputs;
  std::optional<run::PlannedRun> planned;  ///< none: unknown until its data is prepared
};

/// The same without writing anything.
ForeseenRun foresee_run(const Context& context,
                        const CheckedRun& run,
                        const LaunchOptions& options);

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

/// Says on stderr that a run's files are damaged, so that it is left as it is.
void report_damaged(const std::string& label, const Error& problem);

struct PlanOptions {
  bool probe = false;                       ///< estimate runs without history by a short benchmark
  std::string save;                         ///< file to write the plan to, "": none
  std::optional<run::HalvingRule> halving;  ///< by which few of the runs are completed
  bool json = false;
};

/// Prints what is left of each run, with its time as estimated from past runs or from a benchmark
/// and its memory, without running or writing anything. For --save-plan data is prepared, and the
/// plan is written to that file. Returns whether every run can be made: damaged ones are reported.
bool print_plan(const Context& context,
                const std::vector<CheckedRun>& runs,
                const LaunchOptions& launch_options,
                const PlanOptions& options);

}  // namespace forge::app
