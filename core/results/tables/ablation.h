#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/data/rows/prepare.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/measured_speeds.h"
#include "core/results/tables/repetitions.h"
#include "core/results/tables/table_spec.h"

namespace forge::tables {

/// The runs of a config that are shown: the newest completed one of each seed.
struct Sample {
  std::vector<store::RunSummary> runs;   ///< completed, one a seed, sorted by seed
  std::optional<store::RunSummary> run;  ///< the newest of them, else the newest of any state
  /// The oldest completed one of each seed shown, for a repetition plans nothing: what was known
  /// when it was made is what the first one found. In a row of a table it may be one that the row
  /// cannot show (check_completeness).
  std::vector<store::RunSummary> first_runs;
  /// Further seeds whose runs failed or were stopped, and were not completed since.
  std::set<int64_t> ended_early;
  /// Those of them of which a run diverged: completing it would change nothing.
  std::set<int64_t> diverged;
  /// Seeds shown of which another run failed or was stopped.
  std::set<int64_t> repeated;

  bool completed() const { return !runs.empty(); }
};

/// The runs of a row with one value of best_of's key.
struct SweepPoint : Sample {
  double value = 0;
  /// Whether the row lacks something without it: best_of declares it, or its grid goes on to it.
  bool is_wanted = true;
  /// Whether completed runs that decide are not among these, because they are archived, or because
  /// the filter leaves them out.
  bool is_archived = false;
  bool is_left_out = false;
  /// Whether runs of `diverged` are hidden so: that they diverged counts all the same.
  bool hides_diverged = false;

  bool is_hidden() const { return is_archived || is_left_out; }
  /// Whether the value is known to be no best, whatever its other seeds give.
  bool has_diverged() const { return !diverged.empty(); }
  /// Whether the value counts as tried.
  bool is_tried() const { return completed() || has_diverged(); }
};

/// Runs of a config that differ in nothing but their seeds and what the table varies itself.
struct RunSet {
  std::string conditions;  ///< of the table, as the set meets them; "": it can stand in no row
  std::string second_run;  ///< when that of its second seed was made: one seed says nothing
  /// When that was begun, which is earlier where it was imported; "": it was not.
  std::string second_begun = {};
  std::string first_run = {};  ///< when that of its first seed was made
};

/// Sets of runs of a row's config, of which it shows one: of another it might have shown another
/// result (other_sets.h).
struct RunSets {
  RunSet shown;
  std::vector<RunSet> others;       ///< that were tried beside it
  std::set<std::string> differ_in;  ///< what sets these apart from it: "optimizer.eps", "threads"
  /// What sets apart those of them that were trained together with it, but for the table's `by`: a
  /// view of each of these keys shows the same runs.
  std::set<std::string> swept;
  size_t swept_sets = 0;         ///< so many were
  size_t unfinished = 0;         ///< their seeds that were planned or begun, and did not complete
  std::set<std::string> tables;  ///< declared together with this one, with sets made before
  /// Tuning seeds that it was run with before the table declared them as such.
  std::set<int64_t> tuned_undeclared;
};

/// What a run of a row costs, trained to its end.
struct RunCost {
  double operations = 0;
  double seconds = 0;  ///< of the run done first, without evaluations and pauses; 0: not known
  std::string made;    ///< when the first run was that costs so much
};

/// One row of a table.
struct AblationRow : Sample {
  RowSpec spec;
  std::string group;                        ///< value of the table's `by`; "" without it
  std::string experiment;                   ///< experiment_key of the run shown; "" without `by`
  std::vector<SweepPoint> points;           ///< for each value of best_of; empty without it
  std::optional<double> varied;             ///< the value of best_of in `run`
  std::optional<MeasuredSpeed> speed;       ///< if the table takes speeds from measurements
  std::optional<double> throughput_change;  ///< own tokens/s ÷ the baseline's − 1
  std::optional<double> memory_change;      ///< own peak memory ÷ the baseline's − 1
  bool same_micro_batch = true;  ///< as the baseline; else throughput and memory do not compare
  bool same_processes = true;    ///< the same of the number of processes that train a run
  bool same_recompute = true;    ///< the same of train.recompute, in all attempts
  bool same_backend = true;      ///< the same of the program that computed the runs
  bool same_device = true;       ///< the same of the device and its threads
  std::optional<PublishedResult> published;
  /// Eval losses of `runs` at equal training time and equal FLOPs; empty: not known, or not shown.
  std::vector<double> loss_at_equal_time;
  std::vector<double> loss_at_equal_flops;
  /// Of a table that shows these: what the row costs, and what else runs of its config did that
  /// could stand in it (other_budgets.h).
  RunCost cost;
  std::vector<RunCost> other_costs;
  /// The losses of the evaluation's rows, each the mean over `runs`; empty: not known.
  store::EvaluationRows evaluation_rows;
  /// The table's conditions that the row violates, "seq_len 256, this table shows 512". Such a row
  /// is shown, but compared with nothing.
  std::vector<std::string> violations;
  /// In what `runs` differ from the config as it is now, "train.max_steps 60 (now 800)". Such a row
  /// is shown and compared, but decides no claim.
  std::vector<std::string> differs_from_config;
  /// Completed runs that the filter leaves out: of the sample that the row shows, or, if it shows
  /// none, of its config.
  size_t filtered_out = 0;
  /// The ids of completed runs that it lacks because they are archived: of its sample, of those
  /// that best_of chooses from, or, if it shows none, of its config.
  std::set<std::string> archived;
  /// The number of seeds that was planned when the second one's run was made, before anything could
  /// be compared; below 2: nobody planned.
  size_t planned_seeds = 0;
  size_t missing_seeds = 0;  ///< planned ones that it does not show
  RunSets sets;
  /// The ids of those of `first_runs` that ran under another name or with another setting.
  std::set<std::string> repeats;
  /// Seeds of its experiment that were run under other names or settings, and that it does not
  /// show.
  std::set<int64_t> other_seeds;

  bool is_comparable() const { return violations.empty(); }
};

/// Runs of the table's configs that it does not show for the same reason.
struct ExcludedRuns {
  std::string config;
  std::string reason;
  std::vector<std::string> runs;  ///< their ids
};

/// Adds the run to those of its config and reason.
void exclude(const store::RunSummary& run,
             const std::string& reason,
             std::vector<ExcludedRuns>& excluded);

/// What holds for every run that a table shows: "Profile", "quick" and so on.
struct SetupEntry {
  std::string name;
  std::string value;
  std::string short_text;  ///< for the line above the table, "": not in it
};

/// When runs were made.
struct RunTimes {
  std::string planned;  ///< the first one was
  std::string made;     ///< the last one was (made_at)
  std::string ended;    ///< the last one was heard of

  void add(const store::RunSummary& run);
  void add(const RunTimes& times);
};

/// When some run was trained, from and to, in seconds since 1970.
using BusyTimes = std::vector<std::pair<double, double>>;

/// A table with its metrics, ready to be written in any format.
struct Ablation {
  TableSpec table;
  std::vector<AblationRow> rows;
  std::vector<ExcludedRuns> excluded;
  /// Runs that would stand in its rows, were they not archived or left out by the filter: by config
  /// and group. What the table declares counts, whatever of it is shown.
  std::map<std::pair<std::string, std::string>, RunTimes> hidden;
  BusyTimes busy;                 ///< of the project's machines
  std::vector<SetupEntry> setup;  ///< empty without completed runs
  std::string profile;            ///< of the runs shown, else the one asked for; "": not known
  /// By config, what `forge run` must be told besides the profile, so that a missing run of it can
  /// be compared with the runs shown: "--set train.max_steps=60".
  std::map<std::string, std::string> run_options;
  std::string device_options;  ///< of them what chooses the device: " --threads 2"
  std::optional<Published> published;
};

/// The evaluation losses of a run, by step.
using Evaluations = std::function<std::vector<store::LossPoint>(const std::string& run_id)>;

/// What a run's last evaluation found in each of its rows.
using EvaluationRowsOf = std::function<store::EvaluationRows(const std::string& run_id)>;

/// The config of a row as it resolves now, with a profile, "" for its own, and on a device of that
/// type; null where there is none.
using CurrentConfig = std::function<nlohmann::json(
    const std::string& config, const std::string& profile, const std::string& device_type)>;

/// The fingerprints of the files that a config names, as they are now; "" where they are not known.
using CurrentData = std::function<data::DataFingerprints(const nlohmann::json& config)>;

/// The hash of the weights that a config names, as they are now; "" where they are not known.
using CurrentWeights = std::function<std::string(const nlohmann::json& config)>;

struct AblationOptions {
  std::string profile;  ///< "": the one that fills the most rows
  std::optional<Published> published;
  std::vector<benchmark::Record> benchmarks = {};  ///< of the project's configs, as they are now
  /// Conditions that `runs` were chosen by, as typed, and the runs that do not meet them.
  std::vector<std::string> filter = {};
  std::vector<store::ConfiguredRun> filtered_out = {};
  /// Runs of the project that are not shown because they are archived.
  std::vector<store::ConfiguredRun> archived = {};
  /// Runs of the project of other models than their configs have now, archived or not.
  std::vector<store::ConfiguredRun> other_models = {};
  /// All tables of the project, as they are declared now.
  std::vector<TableSpec> project_tables = {};
  /// Runs of other projects: completed ones that may be of the same experiments, and all with names
  /// of older runs that those of this project repeat (RunHistory::behind).
  std::vector<store::ConfiguredRun> elsewhere = {};
  /// Which runs are older ones, made again: of all in the store.
  FirstRuns repetitions = {};
  /// Without it losses at equal budgets are missing.
  Evaluations evaluations = {};
  /// Without it differences do not have the error in them that evaluating so many rows leaves.
  EvaluationRowsOf evaluation_rows = {};
  /// Without it runs count as those of their configs as they are now, and the commands for missing
  /// runs name only the profile.
  CurrentConfig current_config = {};
  /// Without it a text that was edited since is not noticed.
  CurrentData current_data = {};
  /// Without it initial weights that were replaced since are not noticed.
  CurrentWeights current_weights = {};
};

/// Fills a table from the runs of its project. A row shows the newest completed run of each seed
/// among the comparable runs (comparability.h), of the config as it is now if there are such, or
/// without completed runs the newest one. A row that no run of the table's backend completed shows
/// those of another backend, which compare in all but speed and memory. With
/// best_of it does so for each value, and shows the value with the best mean over seeds. A row
/// without comparable runs shows its completed ones and the conditions that they violate. In a
/// table with `by`, a config has a row for each value among its comparable runs, and changes are
/// relative to the baseline's row of the same value.
Ablation build_ablation(const TableSpec& table,
                        const std::vector<store::ConfiguredRun>& runs,
                        const AblationOptions& options = {});

/// The speed that the row shows, of its completed runs or of a measurement.
std::optional<double> tokens_per_second_of(const AblationRow& row, const TableSpec& table);

/// The row of a config in a group, "" without groups; null if there is none.
const AblationRow* find_row(const Ablation& ablation,
                            const std::string& config,
                            const std::string& group = "");

/// The configs of the rows that the table declares, whatever comes of them.
std::set<std::string> declared_configs(const Ablation& ablation);

/// The run of the seed that the row shows; null if it shows none.
const store::RunSummary* shown_of_seed(const AblationRow& row, int64_t seed);

/// A metric of each of the row's runs, in their order; empty if one does not have it, and of speed
/// and memory where they were not computed alike (why_not_one_sample).
std::vector<double> values_of(const AblationRow& row, const std::string& metric);

/// The standard error that a row's fraction has because its runs evaluate only so many cases; 0 for
/// other metrics. The runs evaluate the same cases: more seeds do not make it smaller.
double sampling_error_of(const AblationRow& row, const std::string& metric);

/// How many independent cases a row's fraction is one of, of its runs with the fewest; 0 for other
/// metrics.
int64_t cases_of(const AblationRow& row, const std::string& metric);

/// The mean of a metric over runs; none without runs, if a run does not have it, or of speed and
/// memory where they were not computed alike (why_not_one_sample).
std::optional<double> mean_of(const std::vector<store::RunSummary>& runs,
                              const std::string& metric);

/// "running 43 %", "stopped at 43 %", "queued", "not started", "failed", "missing", "completed", or
/// "left out", by a filter.
std::string state_text(const AblationRow& row);

/// Fills in the rows' losses at equal budgets. At equal tokens a more expensive model has had more
/// training time and more operations. The time budget is what the fastest row took for all its
/// tokens (by the speed of its run done first, without pauses); the operations are those of the row
/// that needs the fewest (core/model/cost.h). Between two evaluations the loss is interpolated
/// linearly in the logarithm of the tokens. It is not known before the first evaluation, for rows
/// that are not comparable, and, for time, for rows on another device than the baseline's.
///
/// A run at less than its full budget is not at the end of its schedule: a run planned for the
/// smaller budget may have a lower loss. `flops_per_token` is called for the newest run of a row.
void add_equal_budgets(Ablation& ablation,
                       const Evaluations& evaluations,
                       const std::function<double(const store::RunSummary&)>& flops_per_token);

/// The loss after `tokens` training tokens: NaN before the first evaluation, and after the last one
/// its loss.
double loss_after(double tokens, const std::vector<store::LossPoint>& evaluations);

}  // namespace forge::tables
