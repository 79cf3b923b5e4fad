#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "core/report/ablation.h"
#include "core/report/plot.h"

namespace forge::app {

struct TableOptions {
  std::string profile;             ///< "": the one that fills the most rows
  std::string by;                  ///< key to divide the rows by, "": none
  std::vector<std::string> where;  ///< conditions that runs must meet (core/store/run_query.h)
  bool archived = false;           ///< archived runs count, too
  bool published = false;          ///< put the published figures beside ours
};

/// Names of a project's tables: the files tables/*.yaml that are tables, sorted.
std::vector<std::string> table_names(const project::Project& project);

/// The table of that name as its file describes it. Throws Error with near misses for an unknown
/// name.
report::TableSpec read_table(const project::Project& project, const std::string& name);

/// The tables of those names, filled from the runs of the project; run folders are looked through
/// for what is new. Throws Error with near misses for an unknown name.
std::vector<report::Ablation> build_tables(const Context& context,
                                           const project::Project& project,
                                           const std::vector<std::string>& names,
                                           const TableOptions& options);

/// The runs of the project that the options let count, with those of other models than their
/// configs'.
std::vector<store::ConfiguredRun> runs_for_tables(const Context& context,
                                                  const project::Project& project,
                                                  const TableOptions& options);

/// Training losses by tokens, a curve for each row of the table with all its seeds.
std::vector<report::Curve> training_curves(const Context& context, const report::Ablation& table);

}  // namespace forge::app
