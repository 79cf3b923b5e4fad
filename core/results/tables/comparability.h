#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/table_spec.h"

/// Which runs may stand in one table.
namespace forge::tables {

/// One thing that must be equal, and what it is for a run.
struct Condition {
  std::string name;   ///< "profile", "data", "train.max_steps", …
  std::string value;  ///< "": not known (yet)
};

/// Everything that `table` wants equal, as it is for `run`; backend and its arithmetic last. The
/// key that the rows are divided by is none of it, nor is the seed where the table does not name
/// it: runs of several seeds are a sample. A section of the config counts key by key, less the keys
/// that cannot change a number and the one that best_of varies.
std::vector<Condition> conditions_of(const store::ConfiguredRun& run, const TableSpec& table);

/// What the run has of the key that the table's rows are divided by; "" where they are not.
std::string group_of(const store::ConfiguredRun& run, const TableSpec& table);

/// The first condition that keeps a run out of a group, as "profile full, this table shows quick";
/// none where the run belongs to it. What is not known keeps nobody out.
std::optional<std::string> difference(const std::vector<Condition>& run,
                                      const std::vector<Condition>& group);

/// All of them.
std::vector<std::string> differences(const std::vector<Condition>& run,
                                     const std::vector<Condition>& group);

/// The conditions that the most rows of the table meet with a completed run, then with any run at
/// all, then those of the newest run. None where `runs` has no run of the table's rows.
std::optional<std::vector<Condition>> choose_group(
    const TableSpec& table, const std::vector<const store::ConfiguredRun*>& runs);

}  // namespace forge::tables

/// Times say what a model costs only where nothing else used the machine.
namespace forge::tables {

/// From this share of a machine's cores on, other processes are said to have kept it busy.
constexpr double busy_from = 0.05;

/// Whether others kept the machine busy while the run trained, or held memory of its GPU.
bool was_loaded(const store::RunSummary& run);
bool was_loaded(const Sample& sample);  ///< one of its runs

/// What disturbed the run, "other processes kept 21 % of the machine busy"; "" for nothing.
std::string load_text(const store::RunSummary& run);

/// The same of the row's most disturbed run.
std::string load_text(const Sample& sample);

}  // namespace forge::tables
