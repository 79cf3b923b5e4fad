#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/context.h"
#include "app/follow_runs.h"
#include "core/results/store/result_store.h"
#include "core/results/store/run_summary.h"
#include "core/run/run_folder.h"

namespace forge::app {

/// Which runs a command is about.
struct RunChoice {
  std::vector<std::string> names;       ///< ids, their beginnings, patterns, folders
  std::vector<std::string> conditions;  ///< --where
};

/// RUN… and --where.
void add_run_choice(const Command& command, RunChoice& choice);

/// The runs: those named, or where none is all, that meet the conditions; archived ones too. Throws
/// Error where nothing was chosen, for a name that is no run's, and for a pattern that fits none.
std::vector<run::RunFolder> chosen_runs(const Context& context, const RunChoice& choice);

/// A run's result in some lines, its folder included. `config` is the run's resolved config.
std::string result_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::string& folder,
                        bool colour);

/// Runs as a table, one a line.
std::string result_table(const std::vector<store::RunSummary>& runs, bool colour);

/// Every column of the store, under its name, and the scores of the last evaluation.
/// The named columns alone.
std::string column_table(const std::vector<store::RunSummary>& runs,
                         const std::vector<std::string>& columns);

nlohmann::json to_json(const store::RunSummary& run);
/// {NAME: {"value", "count"}}
nlohmann::json to_json(const std::map<std::string, worker::Score>& scores);
nlohmann::json to_json(const worker::Evaluation& evaluation);

/// Follows the runs to their ends, says what failed, and prints the results of those that were
/// begun. Returns the exit code: 1 a run failed, 3 one was stopped, 4 the disk is full or fails.
int conduct_and_report(const Context& context,
                       store::ResultStore& store,
                       const std::vector<ToDo>& runs,
                       bool json);

/// Starts what finds room, and prints which runs are left to the queue.
int leave_in_queue(const Context& context, const std::vector<ToDo>& runs, bool json);

}  // namespace forge::app
