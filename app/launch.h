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
#include "core/run/saved_plan.h"
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

/// Settles what the backend and its devices decide of a config.
void settle_for_backend(const Context& context,
                        const worker::BackendInfo& backend,
                        const LaunchOptions& options,
                        config::ResolvedConfig& resolved);

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
