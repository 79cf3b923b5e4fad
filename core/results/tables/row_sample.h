#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/table_spec.h"
#include "core/run/identity.h"

/// Which runs of a config are one sample, and what disturbed them.
namespace forge::tables {

/// Whether a run is one of its config as it resolves now.
using IsCurrent = std::function<bool(const store::ConfiguredRun&)>;

/// All that may change a run's numbers but its seed: completed runs are a sample, whose mean and
/// spread mean something, where this is equal.
run::Identity identity_without_seed(const store::ConfiguredRun& run);
std::string experiment_key(const store::ConfiguredRun& run);  ///< its identity_hash

/// The same without what the table itself varies (best_of's key, the steps of a budget), and with
/// the device's name and variables: all that sets runs of a config apart of which a table could
/// show either. The experiment has its leaves by dotted keys.
run::Identity identity_of_set(const store::ConfiguredRun& run, const TableSpec& table);

/// Whether runs of a config differ in nothing but the seed, what the table itself varies, and the
/// machine: one that diverged says of the other's settings that they diverge with its value.
bool are_tuned_alike(const store::ConfiguredRun& a,
                     const store::ConfiguredRun& b,
                     const TableSpec& table);

/// Newest first; the names decide between runs of one moment, so that the order is always the same.
std::vector<const store::ConfiguredRun*> newest_first(
    const std::vector<store::ConfiguredRun>& runs);

/// All that may change the metric but the seed: identity_without_seed; of speed, time and memory
/// also what computed the run: the device's name, variables, number of processes, rows computed at
/// once and train.recompute; of the training loss train.log_every, the steps of which it is the
/// mean.
run::Identity setup_for(const std::string& metric, const store::ConfiguredRun& run);

/// "optimizer.lr 0.003, the run shown has 0.001".
std::string difference_text(const run::Identity& own, const run::Identity& shown);

/// "901, 902"; of more than eight "901, 902, 903, 904, 905, 906, 907, 908 and 12 more".
std::string seeds_text(const std::set<int64_t>& seeds);

/// Whether attempts of the run differ in device, processes or train.recompute: its speed and memory
/// are those of neither.
bool has_mixed_attempts(const store::RunSummary& run);

/// The newest completed run of each seed whose loss is that of the seed's first one: who repeats a
/// run must not choose between results. It is one of runs that differ in nothing else (setup_for
/// the metric, or identity_without_seed where that is ""); one seed where all seeds have one loss
/// to the last bit, or a seed varies nothing; without any the newest run.
/// `runs` are sorted newest first. Of several such groups it is the one that completed runs of the
/// config as it is now, then the one with completed runs of the most seeds, then that of the newest
/// run. Every other run is excluded, with the reason: "optimizer.lr 0.003, the run shown has
/// 0.001".
Sample sample_of(const std::vector<const store::ConfiguredRun*>& runs,
                 std::vector<ExcludedRuns>& excluded,
                 const std::string& metric = "",
                 const IsCurrent& is_current = {});

/// Why no row shows the run: its first steps are those of a run that repeated an older one and
/// found something else, so that they may have been chosen (run::repeated_run). "" of others.
std::string why_repeated(const store::RunSummary& run);

/// Whether their last losses are the same to the last bit.
bool have_same_loss(const store::RunSummary& a, const store::RunSummary& b);

bool is_completed(const store::ConfiguredRun* run);

/// "queued", "running 43 %", "stopped at 43 %", …
std::string state_text(const store::RunSummary& run);

/// The fraction of the machine's cores from which on the load of other processes makes a run's
/// timings unreliable. Whatever they do takes something from a run on the CPU. One on a GPU needs a
/// core or two: of 79 runs on four GPUs of one machine, of which others kept 2 to 5.5 % busy, the
/// throughput did not depend on that (0.03 % less or more for four points).
double disturbing_load(const store::RunSummary& run);

/// Whether other processes loaded the machine while the run trained, or held memory of its GPU.
bool was_loaded(const store::RunSummary& run);
bool was_loaded(const Sample& sample);  ///< one of its runs

/// That load in words, "other processes kept 21 % of the machine busy"; "" without load.
std::string load_text(const store::RunSummary& run);
std::string load_text(const Sample& sample);  ///< of its run with the highest load

/// What that load means for the timings of `names`: one sentence for all of them, whose runs are
/// the sample's.
std::string unreliable_timing_text(const std::vector<std::string>& names, const Sample& sample);

/// That files which a run reads were changed while it trained, and which, in words; "" of none. Its
/// numbers may be those of the files that its identity names, or not.
std::string changed_inputs_text(const store::RunSummary& run);
std::string changed_inputs_text(const Sample& sample);  ///< of all its runs, by their ids

}  // namespace forge::tables
