#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/report/published.h"
#include "core/report/speed.h"
#include "core/report/table_spec.h"
#include "core/store/result_store.h"

namespace forge::report {

/// What is shown of the comparable runs of a config: the completed ones, the newest of each seed.
struct Sample {
  std::vector<store::RunSummary> runs;   ///< completed, one a seed, sorted by seed
  std::optional<store::RunSummary> run;  ///< the newest of them, else the newest that there is

  bool completed() const { return !runs.empty(); }
};

/// What a row has for one value of the key that best_of varies.
struct Point : Sample {
  double value = 0;
};

/// One row of a table.
struct AblationRow : Sample {
  RowSpec spec;
  std::string division;                     ///< value of the table's `by`; "" without it
  std::vector<Point> points;                ///< for each value of best_of; empty without it
  std::optional<double> varied;             ///< the value of best_of in `run`
  std::optional<MeasuredSpeed> speed;       ///< where the table takes it from measurements
  std::optional<double> throughput_change;  ///< own tokens/s ÷ the baseline's − 1
  std::optional<double> memory_change;      ///< own peak memory ÷ the baseline's − 1
  /// Whether its runs computed as many rows at once as the baseline's: where not, their throughput
  /// and memory are no comparison.
  bool same_micro_batch = true;
  std::optional<PublishedFigure> published;
  /// Eval losses of `runs` when they had had as much training time, and as many operations, as the
  /// others (core/report/equal_budget.h); empty: not known, or no column shows them.
  std::vector<double> loss_at_equal_time;
  std::vector<double> loss_at_equal_flops;
  /// In what the row differs from the table though it must not, "seq_len 256, this table shows
  /// 512"; such a row is shown, but compared with nothing.
  std::vector<std::string> breaks;

  bool is_controlled() const { return breaks.empty(); }
};

/// Runs of the table's configs that it does not show.
struct LeftOut {
  std::string config;
  std::string reason;
  int runs = 0;
};

/// What holds for every run that a table shows: "Profile", "quick" and so on.
struct SetupEntry {
  std::string name;
  std::string value;
  std::string brief;  ///< for one line above the table, "": not in it
};

/// A table with its figures, ready to be written in any format.
struct Ablation {
  TableSpec table;
  std::vector<AblationRow> rows;
  std::vector<LeftOut> left_out;
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
/// (core/report/comparison.h), the newest completed run of each seed, else the newest one that is
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
                            const std::string& division = "");

/// A figure of each of the row's runs, in their order; empty where one does not have it.
std::vector<double> values_of(const AblationRow& row, const std::string& figure);

/// The mean of a figure over runs; NaN where one does not have it.
double mean_of(const std::vector<store::RunSummary>& runs, const std::string& figure);

/// Whether speed and memory of the two can be compared: all their runs were on the same device,
/// with the same threads and as many rows at once.
bool computed_alike(const Sample& a, const Sample& b);

/// "running 43 %", "stopped at 43 %", "queued", "failed", "missing", "completed".
std::string state_text(const AblationRow& row);

/// The values of best_of for which a row that it is the best of has no completed run.
std::vector<std::string> open_values(const AblationRow& row);

}  // namespace forge::report
