#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/expression.h"
#include "core/report/scores.h"
#include "core/yaml/node.h"

/// Ablation tables are files of a project, tables/NAME.yaml: which runs stand in which row, what
/// the columns show, and what must be equal for runs to be compared at all.
namespace forge::report {

/// What a column shows. The published_* ones are shown on request only.
enum class ColumnKind {
  model,      ///< display name of the row
  positions,  ///< where the row's model differs, as the table file says
  parameters,
  eval_loss,
  train_loss,
  tokens_per_second,
  peak_memory,
  overhead,                  ///< change of throughput and memory against the baseline
  score,                     ///< a figure of a synthetic task
  difference,                ///< of a figure to the baseline's, with what may be said of it
  seeds,                     ///< how many runs the row's figures are of
  eval_loss_at_equal_time,   ///< when every row had trained as long (equal_budget.h)
  eval_loss_at_equal_flops,  ///< when every row had done as many operations
  derived,                   ///< computed from figures by an expression
  varied,                    ///< value of best_of's key in the run shown
  by,  ///< value of the key that the rows are divided by; no table file has it
  notes,
  published_eval_loss,
  published_tokens_per_second,
  published_peak_memory,
};
const std::vector<std::string>& names_of(ColumnKind);
bool is_published(ColumnKind kind);

/// How a score is written: `by_name` is a percentage for accuracies and validities.
enum class ScoreFormat { by_name, percent, decimals };
const std::vector<std::string>& names_of(ScoreFormat);

struct ColumnSpec {
  ColumnKind kind = ColumnKind::model;
  std::string title;
  std::string score = {};  ///< its name, for `score`; of `difference` the figure, "": eval_loss
  ScoreFormat format = ScoreFormat::by_name;  ///< for `score` and `difference`
  std::string value = {};                     ///< for `derived`: its expression
  std::string unit = {};                      ///< for `derived`, e.g. "%"
  int precision = 4;                          ///< decimals of `derived`
  Expression expression = {};                 ///< `value`, read
};

/// The figure that the column shows (scores.h), "" for a column of another kind.
std::string figure_name(const ColumnSpec& column);

struct RowSpec {
  std::string config;  ///< whose runs the row shows
  std::string name;    ///< displayed
  std::string positions;
  std::string notes;
};

/// What the table is there to decide: that a row's figure is below or above another row's, or at
/// least or at most a number; or, in words of its own and without `config` and `score`, that a
/// comparison of expressions holds, or that an expression's value lies between numbers.
struct ClaimSpec {
  std::string config;
  std::string below;  ///< config of the other row
  std::string above;  ///< config of the other row
  std::optional<double> at_least;
  std::optional<double> at_most;
  std::string score = eval_loss_name;         ///< the figure, a score or eval_loss
  std::string profile = "full";               ///< of the runs that can decide it
  std::string claim = {};                     ///< the sentence, for `holds`
  std::string holds = {};                     ///< a comparison of two expressions
  std::optional<Comparison> comparison = {};  ///< `holds`, read
  std::string value = {};  ///< an expression that is at_least, at_most or between both
  std::string unit = {};   ///< of `value`, e.g. "%"
  std::optional<Expression> expression = {};  ///< `value`, read

  bool has_own_words() const { return !holds.empty() || !value.empty(); }
};

enum class Extreme { highest, lowest };
const std::vector<std::string>& names_of(Extreme);

/// Lets every row show the best of its config's runs over the values of one key, as papers give the
/// best of a few learning rates. The key need not be equal between the runs of the table.
struct BestOfSpec {
  std::string key;             ///< dotted, e.g. "optimizer.lr"
  std::vector<double> values;  ///< of equally good ones the first is shown
  std::string by;              ///< the figure that decides, a score or eval_loss
  Extreme take = Extreme::highest;
  int64_t selection_rows = 0;  ///< train.selection_rows of the runs that are made for the table
};

/// Where tokens_per_second and the throughput of `overhead` come from: the runs shown, or what
/// `forge bench` measured.
enum class SpeedSource { runs, benchmark };
const std::vector<std::string>& names_of(SpeedSource);

struct TableSpec {
  std::string name;  ///< of the file, without .yaml
  std::string title;
  std::string baseline;  ///< config of the row that the others are compared with
  std::vector<RowSpec> rows;
  std::vector<ColumnSpec> columns;
  /// What the runs of one table must have in common: "data", "tokenizer", "evaluation", "device",
  /// "code", or a dotted key or section of the config. Runs that differ in nothing but the seed are
  /// a sample, unless it is named here.
  std::vector<std::string> must_be_equal;
  /// By how much of the baseline's a row's parameters and FLOPs a token may differ; none: by any.
  std::optional<double> parameters_within = 0.02;
  std::optional<double> flops_within = 0.05;
  std::vector<ClaimSpec> claims;
  std::optional<BestOfSpec> best_of;
  std::string published;  ///< file with published figures, beside the table's own; "": none
  SpeedSource tokens_per_second = SpeedSource::runs;
  std::string by = {};  ///< divide_by; "": each config has one row
};

/// Gives every config a row for each value that its runs have of `key`, "backend" or a key of the
/// config, with a column that shows it. The key need not be equal between the runs then. Claims are
/// about configs and fall away, and speeds are those of the runs. Throws Error for an unknown key.
void divide_by(TableSpec& table, const std::string& key);

/// Whether a column or claim needs losses at equal budgets.
bool shows_equal_budgets(const TableSpec& table);

/// The scores that the table shows or chooses by, each once.
std::vector<std::string> scores_of(const TableSpec& table);

/// The words of must_be_equal that are no config keys.
const std::vector<std::string>& equality_words();

/// Reads and checks a table file. `configs` are the names that a row may name. Throws Error at the
/// place of what is wrong.
TableSpec read_table(const std::string& path, const std::vector<std::string>& configs);

/// The same for a table that was parsed already.
TableSpec table_from_node(const yaml::Node& node, const std::vector<std::string>& configs);

}  // namespace forge::report
