#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/results/metrics.h"
#include "core/results/tables/expression.h"

namespace forge::tables {

/// What others measured for the model of a config.
struct PublishedResult {
  std::string config;
  std::optional<double> eval_loss;
  std::optional<double> tokens_per_second;
  std::optional<double> peak_memory_gib;
};

/// Published results to compare with, their source and setup.
struct Published {
  std::string source;
  std::string url;
  std::string setup;
  std::vector<PublishedResult> results;

  /// The result of a config, or null.
  const PublishedResult* find(const std::string& config) const;
};

// Ablation tables are files of a project, tables/NAME.yaml: the config of each row, the columns,
// and what must be equal for runs to be comparable.

/// What a column shows.
enum class ColumnKind {
  model,       ///< display name of the row
  positions,   ///< where the row's model differs, as the table file says
  metric,      ///< the mean over the row's runs
  difference,  ///< of a metric to the baseline's, with its significance
  published,   ///< a published result, shown on request only
  derived,     ///< computed from metrics by an expression
  overhead,    ///< change of throughput and memory against the baseline
  seeds,       ///< number of the row's runs
  varied,      ///< value of best_of's key in the run shown
  by,          ///< value of the key that rows are grouped by; not for table files
  notes,
};

/// How a score is written: `by_name` is a percentage for accuracies and validities.
enum class ScoreFormat { by_name, percent, decimals };
const std::vector<std::string>& names_of(ScoreFormat);

struct ColumnSpec {
  ColumnKind kind = ColumnKind::model;
  std::string title;
  std::string metric = {};  ///< for `metric`, `difference` and `published`: its name
  ScoreFormat format = ScoreFormat::by_name;  ///< for `metric` and `difference`
  std::string value = {};                     ///< for `derived`: its expression
  std::string unit = {};                      ///< for `derived`, e.g. "%"
  int precision = 4;                          ///< decimals of `derived`
  Expression expression = {};                 ///< `value`, read
  std::string word = {};  ///< `kind` as the table file says it: also a metric's name, "score", …
};

/// The metric of a column of kind `metric` or `difference`, in the column's format; else none.
std::optional<results::Metric> metric_of(const ColumnSpec& column);

struct RowSpec {
  std::string config;  ///< whose runs the row shows
  std::string name;    ///< displayed
  std::string positions;
  std::string notes;
};

/// A statement that the table decides: a row's metric is below or above another row's, or at least
/// or at most a number. Or, with `claim` and without `config` and `score`: a comparison of
/// expressions holds, or an expression's value lies between numbers.
struct ClaimSpec {
  std::string config;
  std::string below;  ///< config of the other row
  std::string above;  ///< config of the other row
  std::optional<double> at_least;
  std::optional<double> at_most;
  std::string score = results::eval_loss_name;  ///< the metric, a score or eval_loss
  std::string profile = "full";                 ///< of the runs that can decide it
  std::string claim = {};                       ///< the sentence, for `holds`
  std::string holds = {};                       ///< a comparison of two expressions
  std::optional<Comparison> comparison = {};    ///< `holds`, read
  std::string value = {};      ///< an expression that is at_least, at_most or between both
  std::string unit = {};       ///< of `value`, e.g. "%"
  Expression expression = {};  ///< `value`, read; of `holds` its left side − its right side

  bool has_own_words() const { return !holds.empty() || !value.empty(); }
};

enum class Extreme { highest, lowest };
const std::vector<std::string>& names_of(Extreme);

/// Every row shows the best of its config's runs over the values of one key, such as the learning
/// rate. The key need not be equal between the runs of the table.
struct BestOfSpec {
  std::string key;             ///< dotted, e.g. "optimizer.lr"
  std::vector<double> values;  ///< the first of equally good ones is shown
  std::string by;              ///< the metric that decides, a score or eval_loss
  Extreme take = Extreme::highest;
  int64_t validation_rows = 0;  ///< train.validation_rows of the table's runs
  /// With which the value is chosen; the row shows runs of other seeds. Empty: with those it shows.
  std::vector<int64_t> tuning_seeds = {};
  /// Whether the grid goes on beyond its ends while a row's best value is there (best_of.h).
  bool extend = false;
};

/// What every row of a table may use up in training.
enum class Budget { tokens, flops, time };
const std::vector<std::string>& names_of(Budget);

/// Every row is trained, to the end of its schedule, with as much as another row uses: it takes so
/// many steps. train.max_steps and train.max_tokens need not be equal then.
struct BudgetSpec {
  Budget equal = Budget::flops;
  std::string of;  ///< config of the row whose runs say how much; "": the baseline
};

/// The source of tokens_per_second and throughput: the runs shown, or `forge bench`.
enum class SpeedSource { runs, benchmark };
const std::vector<std::string>& names_of(SpeedSource);

struct TableSpec {
  std::string name;                 ///< of the file, without .yaml
  std::string project_option = {};  ///< " -p PATH", where commands must name the project; not in it
  std::string title;
  std::string baseline;  ///< config of the row that the others are compared with
  std::vector<RowSpec> rows;
  std::vector<ColumnSpec> columns;
  /// What must be equal for all runs: "data", "tokenizer", "evaluation", "device", "code", or a
  /// dotted key or section of the config. Runs that differ only in the seed are a sample, unless
  /// the seed is named here.
  std::vector<std::string> must_be_equal;
  /// Allowed relative differences of parameters and FLOPs a token from the baseline's; none: any.
  std::optional<double> parameters_within = 0.02;
  std::optional<double> flops_within = 0.05;
  std::string primary = {};  ///< the metric that the table is about; "": see primary_metric
  int seeds = 0;             ///< planned for each row; 0: not said
  std::vector<ClaimSpec> claims;
  /// Of a table with rows by a key: its claims, which are about configs.
  std::vector<ClaimSpec> claims_not_judged = {};
  std::optional<BestOfSpec> best_of;
  /// Seeds that best_of chose with, of a table with rows by its key: they show these, too.
  std::vector<int64_t> shown_tuning_seeds = {};
  std::optional<BudgetSpec> budget = {};
  std::string published;  ///< file with published metrics, beside the table's own; "": none
  SpeedSource tokens_per_second = SpeedSource::runs;
  std::string by = {};  ///< divide_by; "": each config has one row
};

/// Gives every config a row for each value of `key` ("backend" or a config key) among its runs, and
/// a column with that value. The key need not be equal then. Claims are not judged, since
/// they are about configs; speeds are those of the runs. Throws Error for an unknown key.
void group_by(TableSpec& table, const std::string& key);

/// Whether the column shows speeds that `forge bench` measured.
bool shows_benchmark(const ColumnSpec& column, const TableSpec& table);

/// Whether the metric is a timing of the table's runs. Speeds that `forge bench` measured are not.
bool is_timed_by_runs(const std::string& metric, const TableSpec& table);

/// Whether the column shows such a timing or is computed from one.
bool depends_on_time(const ColumnSpec& column, const TableSpec& table);

/// A metric that a claim is about, of the row of a config.
struct ClaimedMetric {
  std::string metric;
  std::string config;
};
std::vector<ClaimedMetric> metrics_of(const ClaimSpec& claim, const TableSpec& table);

/// Whether a column or claim needs losses at equal budgets.
bool shows_equal_budgets(const TableSpec& table);

/// The metric to which half of the error is given that a table may make (verdicts.h): `primary`, or
/// that of the first column of a held-out loss or score, or eval_loss.
std::string primary_metric(const TableSpec& table);

/// The scores that the table shows or chooses by, each once.
std::vector<std::string> scores_of(const TableSpec& table);

}  // namespace forge::tables
