#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"

namespace forge::tables {

/// What the runs of a table have in common, each as a name and a value: profile, training,
/// evaluation, data, tokenizer, seed, device, parameters, versions, date of the newest run. Where
/// runs differ in one, all its values are given. Empty for no runs.
std::vector<SetupEntry> describe_setup(const std::vector<const store::ConfiguredRun*>& runs);

// The commands that make the runs of a table.

/// The command that makes the run of a row whose run is missing, with `value` for what best_of
/// varies.
std::string command_for(const AblationRow& row,
                        const Ablation& ablation,
                        std::optional<double> value = std::nullopt);

/// The command that shows archived runs again, by their ids.
std::string restore_command(const std::set<std::string>& archived);

/// The command that makes what the table lacks of all its rows, on the device of the runs shown.
std::string table_command(const Ablation& ablation);

/// Fills in `run_options` and `device_options` of the table's configs: `shown` are the runs that
/// the table shows, at least one, and what they were told beyond their config's own values a
/// missing run must be told too.
void add_run_options(const std::vector<const store::ConfiguredRun*>& shown,
                     const CurrentConfig& current_config,
                     Ablation& ablation);

/// The commands that make every run that the table lacks, or show it again.
std::vector<std::string> missing_commands(const Ablation& ablation);

/// Those that make every run of the tables and print them.
std::vector<std::string> reproduction_commands(const std::vector<Ablation>& ablations);

/// All completed runs whose metrics tables show or chose from, each once, in the order of the rows.
std::vector<store::RunSummary> shown_runs(const std::vector<Ablation>& ablations);

}  // namespace forge::tables
