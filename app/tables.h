#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "core/report/ablation.h"

namespace forge::app {

struct TableOptions {
  std::string profile;     ///< "": the one that fills the most rows
  std::string by;          ///< key to divide the rows by, "": none
  bool archived = false;   ///< archived runs count, too
  bool published = false;  ///< put the published figures beside ours
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

}  // namespace forge::app
