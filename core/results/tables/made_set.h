#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/repetitions.h"
#include "core/run/identity.h"

namespace forge::tables {

/// All runs of a config that differ in nothing but their seeds and what the table varies, whatever
/// became of them.
struct MadeSet {
  run::Identity identity;
  std::string group;  ///< value of the table's `by`
  std::vector<const store::ConfiguredRun*> runs;
};

/// The sets that runs make up, by their keys. A table varies no other values than those that it
/// lists, and of a row with a budget one length: who tries others does what the table does not, and
/// makes another set.
std::map<std::string, MadeSet> sets_of(const std::vector<const store::ConfiguredRun*>& runs,
                                       const TableSpec& table);

/// Whether the run was trained with another number of held-out rows than the table's runs are.
bool holds_other_rows(const store::ConfiguredRun& run, const BestOfSpec& best_of);

bool shows_one_of(const AblationRow& row, const MadeSet& set);

/// The seeds that told something which the row does not show.
std::set<int64_t> telling_seeds(const MadeSet& set, const AblationRow& row);

/// Whether at least `seeds` seeds of the set had reported a loss at that time.
bool were_known_at(const std::string& time, const MadeSet& set, size_t seeds);

/// Seeds that were planned or begun and did not complete; 0 while some may.
size_t unfinished_seeds_of(const MadeSet& set);

/// The table's conditions as a set meets them, and its group. Each command has a program of its
/// own.
std::string conditions_text(const MadeSet& set, const TableSpec& table);

/// When the runs were made. One of `repetitions` has the time of its first one, unless `best_of`
/// may choose another value by it.
RunSet set_of(std::string conditions,
              const std::vector<const store::ConfiguredRun*>& runs,
              const FirstRuns& repetitions = {},
              const std::optional<BestOfSpec>& best_of = {});

}  // namespace forge::tables
