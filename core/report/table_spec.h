#pragma once

#include <string>
#include <vector>

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
  overhead,  ///< change of throughput and memory against the baseline
  notes,
  published_eval_loss,
  published_tokens_per_second,
  published_peak_memory,
};
const std::vector<std::string>& names_of(ColumnKind);
bool is_published(ColumnKind kind);

struct ColumnSpec {
  ColumnKind kind = ColumnKind::model;
  std::string title;
};

struct RowSpec {
  std::string config;  ///< whose runs the row shows
  std::string name;    ///< displayed
  std::string positions;
  std::string notes;
};

/// That one row's evaluation loss is below another's: what the table is there to decide.
struct ClaimSpec {
  std::string config;
  std::string below;             ///< config of the other row
  std::string profile = "full";  ///< of the runs that can decide it
};

struct TableSpec {
  std::string name;  ///< of the file, without .yaml
  std::string title;
  std::string baseline;  ///< config of the row that the others are compared with
  std::vector<RowSpec> rows;
  std::vector<ColumnSpec> columns;
  /// What the runs of one table must have in common: "data", "tokenizer", "evaluation", "device",
  /// or a dotted key or section of the config. Their seed must be equal whether named or not.
  std::vector<std::string> must_be_equal;
  std::vector<ClaimSpec> claims;
  std::string published;  ///< file with published figures, beside the table's own; "": none
};

/// The words of must_be_equal that are no config keys.
const std::vector<std::string>& equality_words();

/// Reads and checks a table file. `configs` are the names that a row may name. Throws Error at the
/// place of what is wrong.
TableSpec read_table(const std::string& path, const std::vector<std::string>& configs);

/// The same for a table that was parsed already.
TableSpec table_from_node(const yaml::Node& node, const std::vector<std::string>& configs);

}  // namespace forge::report
