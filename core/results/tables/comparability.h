#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/data/rows/prepare.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/row_sample.h"
#include "core/results/tables/table_spec.h"

/// Which runs may stand in one table.
namespace forge::tables {

/// One thing that must be equal, and what it is for a run.
struct Condition {
  std::string name;         ///< "profile", "data", "train.max_steps", …
  std::string value;        ///< "": not known (yet); of a key of the config: it is empty
  std::string source = {};  ///< what a fingerprint is of, by name: "stories.txt"; "": it says all
  bool is_key = false;      ///< of the config: a run that lacks the condition has it not set
};

/// What a run was evaluated on: "256 rows of 16 tokens", or, where scores are of what it generates,
/// "256 rows of 16 tokens, 40 prompts".
std::string evaluation_of(const store::ConfiguredRun& run);

/// The variables that chose how the run's libraries computed, "DNNL_MAX_CPU_ISA=SSE41", as its
/// environment records them; "" for none.
std::string numerics_variables_of(const store::ConfiguredRun& run);

/// The conditions of `table` as they are for `run`; whether it begins with drawn weights, backend
/// numerics version and an external backend's program last. A section of
/// the config counts key by key, without the keys that cannot change a number and the one that
/// best_of varies. The key that rows are grouped by is not a condition, nor is the seed unless the
/// table names it: runs of several seeds are a sample.
std::vector<Condition> conditions_of(const store::ConfiguredRun& run, const TableSpec& table);

/// Whether it is an external backend's program, of which each command has one of its own, and in a
/// table with a row per backend each backend.
bool is_program(const Condition& condition);

/// Whether the key says how long to train.
bool is_length(const std::string& key);

/// Whether the table gives the runs of a config another value of the key than the config has.
bool is_varied_by(const TableSpec& table, const std::string& config, const std::string& key);

/// Whether forge derives the key of a run of that config from the key that best_of varies.
bool follows_value(const TableSpec& table, const nlohmann::json& config, const std::string& key);

/// The run's value of the key that the table's rows are grouped by; "" without such a key.
std::string group_of(const store::ConfiguredRun& run, const TableSpec& table);

/// The conditions that a run violates, each as "profile full, this table shows quick", of hashes
/// the first digits, with the name of what they are of where it differs. An unknown value violates
/// nothing.
std::vector<std::string> violations(const std::vector<Condition>& run,
                                    const std::vector<Condition>& group);

/// Whether a run of another backend violates nothing but what tells backends apart: its losses are
/// comparable, its speed and memory are not.
bool differs_in_backend_alone(const std::vector<Condition>& run,
                              const std::vector<Condition>& group);

/// The files that a config names, as they are now.
struct CurrentFiles {
  std::string program;  ///< hash of those of an external backend's command; "": forge's own
  data::DataFingerprints data = {};  ///< each "" where it is not known, or cannot differ
  std::string initial_weights = {};  ///< their hash; "" where it is not known, or there are none
};

/// The run's config with the paths that its config has now, where they name files of the same name:
/// a folder may move. What these files hold is what a new run with the run's settings would read.
nlohmann::json with_current_paths(const nlohmann::json& own, const nlohmann::json& current);

/// In what a run differs from its config as it resolves now, by --set or because the config, its
/// text or its program was edited since: "train.max_steps 60 (now 800)". Paths count by the file's
/// name, because a folder may move. Neither the seed counts, nor what the table itself varies.
std::vector<std::string> differences_from_config(const store::ConfiguredRun& run,
                                                 const nlohmann::json& current,
                                                 const CurrentFiles& files,
                                                 const TableSpec& table);

/// The keys outside of the model that the runs do not have in common: what the table's conditions
/// leave open. A key that the table varies is not among them.
std::vector<std::string> differing_keys(const std::vector<const store::ConfiguredRun*>& runs,
                                        const TableSpec& table);

/// The first three, and how many more there are: "seq_len 256; lr 0.1; seed 3; and 2 more".
std::string first_of(const std::vector<std::string>& texts);

/// The conditions that completed runs of the most rows meet; of several the one with runs of the
/// configs as they are now in the most rows, then the one with the most completed runs, then with
/// runs of any state in the most rows, then that of the newest run. Of the programs that one
/// external command started it is one, chosen in the same way. None without runs. All `runs` are of
/// the table's configs.
std::optional<std::vector<Condition>> choose_group(
    const TableSpec& table,
    const std::vector<const store::ConfiguredRun*>& runs,
    const IsCurrent& is_current = {});

/// "initial weights and order of rows", "initial weights alone", "order of rows alone" or
/// "nothing": what another seed would change of a run with this config.
std::string varied_by_seed(const nlohmann::json& config);

/// Whether the table shows, tests, claims or chooses by training losses.
bool compares_train_loss(const TableSpec& table);

}  // namespace forge::tables
