#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/context.h"
#include "app/terminal.h"
#include "core/results/store/result_store.h"
#include "core/results/store/run_summary.h"
#include "core/run/run_folder.h"

namespace forge::run {
struct RunModel;
}

namespace forge::app {

/// What a synchronisation of the store says: its progress, once it takes long, and who else writes.
store::SyncWatch watch_with(LateProgress& progress);

/// The store of the runs folder, brought up to date with the run folders. Prints warnings about
/// damaged ones, and that nothing can be written where that is so. Throws Error where there is no
/// runs folder.
store::ResultStore open_store(const Context& context);
/// The same; nullopt where there is no runs folder.
std::optional<store::ResultStore> find_store(const Context& context);

/// "run X waits: the supervisor (process 4711) is stopped: …"; "" where nothing of it is stopped.
std::string stopped_text(const run::RunFolder& folder);

/// Chooses the project's runs, but for archived ones.
store::RunFilter filter_of(const Context& context, const project::Project& project);

/// Chooses the runs of the project or the whole workspace that -p names, else those of all;
/// archived ones too. Throws Error where it names neither.
store::RunFilter chosen_project(const Context& context);

/// The runs of the store, newest first; none where there is no runs folder.
std::vector<store::RunSummary> stored_runs(const Context& context, const store::RunFilter& filter);

/// Those of these runs that the query selects. Their configs are there where `with_configs` is, or
/// the query names keys of them: who shows three runs of ten thousand parses three.
std::vector<store::ConfiguredRun> select_stored(const Context& context,
                                                std::vector<store::RunSummary> runs,
                                                const store::RunQuery& query,
                                                bool with_configs);

/// The runs that a command is given.
struct RunSelector {
  std::vector<std::string> names;       ///< ids, prefixes of them, patterns, folders
  std::vector<std::string> conditions;  ///< --where

  bool empty() const { return names.empty() && conditions.empty(); }
};

/// RUN… and --where.
void add_run_selector(const Command& command, RunSelector& choice);

/// The named runs, or all runs where none is named, that meet the conditions; archived ones too. A
/// pattern and a condition alone choose runs of the project that -p names.
/// Throws Error where neither names nor conditions are given, and for a name or pattern that
/// matches no run.
std::vector<run::RunFolder> selected_runs(const Context& context, const RunSelector& choice);

/// Warns of each newer checkpoint of the run that cannot be used.
void print_skipped_checkpoints(const run::RunModel& model);

/// A loss with four decimals; "-" where there is none.
std::string loss_text(const std::optional<double>& loss);

/// A run's result in some lines, its folder included. `config` is the run's resolved config.
std::string result_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::string& folder);

/// "step 2,000 of train_llama-3f21": of another run's checkpoint.
std::string continued_text(const std::filesystem::path& checkpoint);
/// {"run", "step"}; null for "".
nlohmann::json continued_json(const std::filesystem::path& checkpoint);

/// How it was made: steps, the checkpoint of another run that it `continued` (""), learning rate,
/// date and command.
std::string origin_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::filesystem::path& continued);

/// Runs as a table, one a line; the keys in which runs of one config differ have columns, so many
/// at most.
std::string result_table(const std::vector<store::ConfiguredRun>& runs, size_t most_keys = 4);
std::string result_table(const std::vector<store::RunSummary>& runs);  ///< without such columns

/// Runs as a table of the named columns and keys.
std::string column_table(const std::vector<store::ConfiguredRun>& runs,
                         const std::vector<std::string>& columns);

/// Every column of the store by its name, and the scores of the last evaluation.
nlohmann::json to_json(const store::RunSummary& run);
/// {NAME: {"value", "count"}}
nlohmann::json to_json(const std::map<std::string, worker::Score>& scores);
nlohmann::json to_json(const worker::Evaluation& evaluation);

/// Prints what the runs ended with.
void print_results(const Context& context, const std::vector<std::string>& ids, bool json);

/// "No process serves the queue; …", where `run` is queue::unserved_run; "" where that is "".
std::string unserved_text(const std::string& run);
/// Says so once on stderr, for a command that waits: to be called all along.
void warn_of_unserved_queue(const std::filesystem::path& runs_dir);

}  // namespace forge::app
