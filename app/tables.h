#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "core/base/error.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/sheet.h"

namespace forge::app {

struct TableOptions {
  std::string profile;  ///< "": the one that fills the most rows
  std::string by;       ///< key to split the rows by, "": none
  /// Conditions that runs must meet (core/results/store/result_store.h).
  std::vector<std::string> where;
  bool archived = false;   ///< include archived runs
  bool published = false;  ///< show published results beside ours
};

/// -p, --profile, --archived and --published
void add_table_options(const Command& command, TableOptions& options);

/// Names of the YAML files in a folder of a project, without ".yaml", sorted.
std::vector<std::string> yaml_names(const std::filesystem::path& folder);

/// Throws Error where the project declares no "sweep" or "table" of that name. `how` explains how
/// to declare one.
void require_declared(const project::Project& project,
                      const std::string& kind,
                      const std::string& name,
                      const std::vector<std::string>& known,
                      const std::string& how);

/// Names of a project's tables: the files tables/*.yaml that are tables, sorted.
std::vector<std::string> table_names(const project::Project& project);

/// The table of that name, or all of the project for "". Throws Error where there is none.
std::vector<std::string> chosen_tables(const project::Project& project, const std::string& name);

/// The table of that name as its file describes it. Throws Error with near misses for an unknown
/// name.
tables::TableSpec read_table(const project::Project& project, const std::string& name);

/// All tables of the project that can be read: what is wrong with one keeps nobody from training,
/// or from another table.
std::vector<tables::TableSpec> readable_tables(
    const project::Project& project, const std::function<void(const Error&)>& on_problem = {});

/// The tables of those names, filled from the runs of the project; new run folders are read first.
/// Throws Error with near misses for an unknown name.
std::vector<tables::Ablation> build_tables(const Context& context,
                                           const project::Project& project,
                                           const std::vector<std::string>& names,
                                           const TableOptions& options);

/// Runs of a project, also those whose model is not their config's current one.
struct RunsForTables {
  std::vector<store::ConfiguredRun> shown;         ///< that --where selects
  std::vector<store::ConfiguredRun> filtered_out;  ///< the others, and archived ones
};
RunsForTables runs_for_tables(const Context& context,
                              const project::Project& project,
                              const TableOptions& options);

/// What `forge bench` measured of the project's configs as they are now.
std::vector<benchmark::Record> current_benchmarks(const Context& context,
                                                  const project::Project& project);

/// Training losses by tokens, a curve for each row of the table with all its seeds.
std::vector<tables::Curve> training_curves(const Context& context, const tables::Ablation& table);

}  // namespace forge::app
