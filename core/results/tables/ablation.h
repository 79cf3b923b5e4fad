#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/results/benchmark/benchmark.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/table_spec.h"

/// Speeds of a table's rows from `forge bench` instead of from the rows' runs.
namespace forge::tables {

/// The measurement that a row shows.
struct MeasuredSpeed {
  benchmark::Record record;
  /// How it was measured otherwise than the others, "measured in another call, on 2026-11-20"; ""
  /// where it can be compared with the baseline's.
  std::string not_comparable_because;
};

/// For each row of the table its measurement, none where there is none: of the call that measured
/// the most rows, the newest of those; of rows that it did not measure their newest one, which says
/// so. `records` are measurements of training, of any configs.
std::vector<std::optional<MeasuredSpeed>> choose_speeds(
    const TableSpec& table, const std::vector<benchmark::Record>& records);

/// How the speeds that can be compared were measured, in one line; "" where there are none.
std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds);

/// The command that measures all rows in one call.
std::string bench_command(const TableSpec& table);

/// What is shown of the comparable runs of a config: the completed ones, the newest of each seed.
struct Sample {
  std::vector<store::RunSummary> runs;   ///< completed, one a seed, sorted by seed
  std::optional<store::RunSummary> run;  ///< the newest of them, else the newest that there is

  bool completed() const { return !runs.empty(); }
};

/// What a row has for one value of the key that best_of varies.
struct SweepPoint : Sample {
  double value = 0;
};

/// One row of a table.
struct AblationRow : Sample {
  RowSpec spec;
  std::string group;                        ///< value of the table's `by`; "" without it
  std::vector<SweepPoint> points;           ///< for each value of best_of; empty without it
  std::optional<double> varied;             ///< the value of best_of in `run`
  std::optional<MeasuredSpeed> speed;       ///< where the table takes it from measurements
  std::optional<double> throughput_change;  ///< own tokens/s ÷ the baseline's − 1
  std::optional<double> memory_change;      ///< own peak memory ÷ the baseline's − 1
  /// Whether its runs computed as many rows at once as the baseline's: where not, their throughput
  /// and memory are no comparison.
  bool same_micro_batch = true;
  std::optional<PublishedResult> published;
  /// Eval losses of `runs` when they had had as much training time, and as many operations, as the
  /// others; empty: not known, or no column shows them.
  std::vector<double> loss_at_equal_time;
  std::vector<double> loss_at_equal_flops;
  /// In what the row differs from the table though it must not, "seq_len 256, this table shows
  /// 512"; such a row is shown, but compared with nothing.
  std::vector<std::string> violations;

  bool is_comparable() const { return violations.empty(); }
};

/// Runs of the table's configs that it does not show.
struct ExcludedRuns {
  std::string config;
  std::string reason;
  int runs = 0;
};

/// What holds for every run that a table shows: "Profile", "quick" and so on.
struct SetupEntry {
  std::string name;
  std::string value;
  std::string short_text;  ///< for one line above the table, "": not in it
};

/// A table with its metrics, ready to be written in any format.
struct Ablation {
  TableSpec table;
  std::vector<AblationRow> rows;
  std::vector<ExcludedRuns> excluded;
  std::vector<SetupEntry> setup;  ///< empty where no run is completed
  std::string profile;            ///< of the runs shown, or asked for; "" where neither is known
  std::optional<Published> published;
};

struct AblationOptions {
  std::string profile;  ///< "": the one that fills the most rows
  std::optional<Published> published;
  std::vector<benchmark::Record> benchmarks = {};  ///< of the project's configs, as they are now
  /// The evaluation losses of a run by its id, for losses at equal budgets; none: they stay open.
  std::function<std::vector<store::LossPoint>(const std::string&)> evaluations = {};
};

/// Fills a table from the runs of its project: in every row, of those that are comparable
/// (comparability.h), the newest completed run of each seed, else the newest one that is
/// not completed. With best_of that holds for each of its values, and the row shows the best of
/// them by its mean over seeds. A row that has completed runs, but none that is comparable, shows
/// those and says what they break. Of a table that is divided, a config has a row for each value
/// that comparable runs of it have, and changes are those against the baseline's row of the same
/// value.
Ablation build_ablation(const TableSpec& table,
                        const std::vector<store::ConfiguredRun>& runs,
                        const AblationOptions& options = {});

/// The speed that the row shows, of its completed run or of a measurement.
std::optional<double> tokens_per_second_of(const AblationRow& row, const TableSpec& table);

/// The row of a config in a division, "" where rows are not divided; null where there is none.
const AblationRow* find_row(const Ablation& ablation,
                            const std::string& config,
                            const std::string& group = "");

/// A metric of each of the row's runs, in their order; empty where one does not have it.
std::vector<double> values_of(const AblationRow& row, const std::string& metric);

/// The mean of a metric over runs; none without runs, or if a run does not have it.
std::optional<double> mean_of(const std::vector<store::RunSummary>& runs,
                              const std::string& metric);

/// Whether speed and memory of the two can be compared: all their runs were on the same device,
/// with the same threads and as many rows at once.
bool same_setup(const Sample& a, const Sample& b);

/// "running 43 %", "stopped at 43 %", "queued", "failed", "missing", "completed".
std::string state_text(const AblationRow& row);

/// The values of best_of for which a row that it is the best of has no completed run.
std::vector<std::string> missing_values(const AblationRow& row);

/// The evaluation losses of a run, by step.
using Evaluations = std::function<std::vector<store::LossPoint>(const std::string& run_id)>;

/// Fills in what the rows' losses were when each had been given as much as the others: as much
/// training time as the row that was done first took for all its tokens, and as many floating point
/// operations as the row that needs the fewest. At equal tokens a dearer model has had more of
/// both. Time is tokens over the row's speed, evaluations and pauses left out; operations are those
/// of core/model/arithmetic.h. Between two evaluations the loss is taken to be straight in the
/// logarithm of the tokens; before the first one it is not known, nor is it for a row that breaks
/// the comparison or, for time, was run on another device than the baseline.
///
/// A run that has not come to its end has not come to the end of its schedule either: the loss of a
/// run that was made for the smaller budget may be lower.
///
/// `flops_per_token` is asked for the newest run of a row.
void add_equal_budgets(Ablation& ablation,
                       const Evaluations& evaluations,
                       const std::function<double(const store::RunSummary&)>& flops_per_token);

/// The loss after so many tokens; NaN before the first evaluation and for none. Behind the last one
/// it is the last one's.
double loss_after(double tokens, const std::vector<store::LossPoint>& evaluations);

}  // namespace forge::tables
