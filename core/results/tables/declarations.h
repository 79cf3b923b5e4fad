#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/made_set.h"
#include "core/results/tables/repetitions.h"

/// Why other sets of runs of a row's config were made, by what tables of the project declared.
namespace forge::tables {

/// Whether the run recorded the table as it is now. Runs of earlier versions recorded none: of
/// these nothing is said.
bool has_recorded(const TableSpec& declared, const store::ConfiguredRun& run);

/// Tells which runs tune the rows of a table, as its file declares it.
class Tuning {
 public:
  /// Both must outlive it.
  Tuning(const TableSpec& declared, const FirstRuns& repetitions)
      : declared_(declared), repetitions_(repetitions) {}

  /// Whether the set is one more value that was tried by seeds which no row shows. `telling`: those
  /// of its seeds that told something.
  bool has_tried(const MadeSet& set, const MadeSet& own, const std::set<int64_t>& telling) const;

  /// The seeds of the row's set that the table calls tuning seeds, and had not when it was run with
  /// them.
  std::set<int64_t> undeclared_seeds_of(const MadeSet& own) const;

 private:
  /// Whether the run was made for it, and so was the one that it repeats.
  bool has(const store::ConfiguredRun& run) const;

  const TableSpec& declared_;
  const FirstRuns& repetitions_;
};

/// Why another set was made.
enum class MadeFor {
  what_it_finds,
  another_table,  ///< declared before anything was known
  tuning,         ///< of another table, by seeds that neither shows
};

/// Finds the table of the project that accounts for a set.
class Declarations {
 public:
  /// All must outlive it.
  Declarations(const TableSpec& own, const AblationOptions& options);

  struct Account {
    MadeFor made_for = MadeFor::what_it_finds;
    std::string table = "";
  };

  /// `set` and `shown` are of the row's config and meet different conditions of the table.
  Account of(const MadeSet& set, const MadeSet& shown, const AblationRow& row) const;

  /// Of a table that trains each row with a budget: another one of the project for which the config
  /// was run as it is, to the end of its own length; "" for none.
  std::string of_own_length(const MadeSet& set, const MadeSet& shown) const;

 private:
  struct Declared {
    const TableSpec* table;
    std::string design;
  };

  /// Rows by the key of best_of show with what the value is chosen.
  bool shows_tuning_seeds(const AblationRow& row) const;
  /// Whether `shown` was the row that this table was to show when the set was made, and is no value
  /// that the other table found: the config by itself, but for what this table varies. Who reads a
  /// table chooses the values of --by, one after another.
  bool was_to_be_shown(const MadeSet& shown, const MadeSet& set) const;
  /// Another table of the project for which the config was run as it is; "" for none. There is one
  /// such set alone: that of the config as it was when the row's runs were planned. It must differ
  /// from the row so that it can stand in none here.
  std::string of_config_itself(const MadeSet& set, const MadeSet& shown) const;
  /// Whether they differ in the rows that this table holds out of the evaluation to choose a value,
  /// and in nothing else but that value.
  bool differ_as_tuned(const MadeSet& set, const MadeSet& shown) const;

  Declared own_;
  CurrentConfig current_config_;
  std::vector<Declared> others_;
};

}  // namespace forge::tables
