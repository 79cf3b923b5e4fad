#include "core/results/tables/other_sets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/declarations.h"
#include "core/results/tables/made_set.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/set_place.h"
#include "core/results/tables/table_design.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

/// Whether the run has the value of best_of that the row shows, and a seed that it may show.
bool has_value_shown(const ConfiguredRun& run, const AblationRow& row, const TableSpec& table) {
  if (!table_tuned_by(run.summary, table).empty()) return false;
  if (!table.best_of) return true;
  return number_of(run.config, table.best_of->key) == row.varied &&
         !is_tuning_seed(*table.best_of, run.summary.seed);
}

/// Sets of the row's own values that it does not show, by seeds that it may show. Tuning seeds
/// chose one of them before the table was changed: who tunes on when a row disappoints shows
/// another.
std::vector<RunSet> shown_before(const MadeSet& own,
                                 const AblationRow& row,
                                 const TableSpec& declared) {
  std::vector<RunSet> sets;
  if (!declared.best_of || declared.best_of->tuning_seeds.empty()) return sets;
  std::map<double, Runs> of_values;
  for (const ConfiguredRun* run : own.runs) {
    const double value = number_of(run->config, declared.best_of->key);
    if (value != row.varied && !is_tuning_seed(*declared.best_of, run->summary.seed) &&
        !has_recorded(declared, *run))
      of_values[value].push_back(run);
  }
  for (const auto& [value, runs] : of_values) {
    RunSet set = set_of(row.sets.shown.conditions + value_text(value), runs);
    if (!set.second_run.empty()) sets.push_back(std::move(set));
  }
  return sets;
}

/// Whether the row shows the seed, or was to show it.
bool is_seed_of(const AblationRow& row, int64_t seed) {
  return shown_of_seed(row, seed) ||
         std::any_of(row.first_runs.begin(), row.first_runs.end(), [&](const auto& run) {
           const std::vector<std::string> planned = split(run.planned_seeds, ',');
           return std::find(planned.begin(), planned.end(), std::to_string(seed)) != planned.end();
         });
}

/// Runs that are the only telling ones of their sets: when each was begun, by seed, and in what
/// they differ from those that a row shows.
struct LoneRuns {
  std::map<int64_t, std::vector<std::string>> begun;
  std::set<std::string> differ_in;

  void add(const MadeSet& set, int64_t seed) {
    std::string first;
    for (const ConfiguredRun* run : set.runs) {
      const store::RunSummary& summary = run->summary;
      if (summary.seed == seed && tells(*run) && (first.empty() || begun_at(summary) < first))
        first = begun_at(summary);
    }
    begun[seed].push_back(first);
  }

  /// When each of the sets was begun that they are together, whatever else they differ in: as many
  /// as two seeds have runs. Who gives each seed settings of its own tries as much.
  std::vector<std::string> sets() {
    for (auto& [seed, times] : begun) std::sort(times.begin(), times.end());
    for (std::vector<std::string> found;;) {
      std::vector<std::string> next;
      for (const auto& [seed, times] : begun)
        if (times.size() > found.size()) next.push_back(times[found.size()]);
      if (next.size() < 2) return found;
      std::sort(next.begin(), next.end());
      found.push_back(next[1]);
    }
  }
};

/// When the newest of the row's runs was made.
std::string newest_of(const AblationRow& row) {
  std::string newest;
  for (const store::RunSummary& run : row.runs) newest = std::max(newest, made_at(run));
  return newest;
}

/// Whether the table has a row of the config for the set's value of its `by`, or would have one if
/// the runs of the value were not hidden.
bool has_own_row(const MadeSet& set, const AblationRow& row, const Ablation& ablation) {
  return set.group != row.group && (find_row(ablation, row.spec.config, set.group) ||
                                    ablation.hidden.count({row.spec.config, set.group}) > 0);
}

/// Whether another row of the table shows the set.
bool is_shown_by_another(const MadeSet& set, const AblationRow& row, const Ablation& ablation) {
  return std::any_of(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& other) {
    return &other != &row && shows_one_of(other, set);
  });
}

}  // namespace

void count_other_sets(const MadeRuns& made,
                      const TableSpec& declared,
                      const AblationOptions& options,
                      Ablation& ablation) {
  const Declarations declarations(declared, options);
  const Tuning tuning(declared, options.repetitions);
  std::map<Runs, std::map<std::string, MadeSet>> known_sets;
  for (AblationRow& row : ablation.rows) {
    if (row.runs.size() < 2) continue;
    const Runs of_config = made.of_config(row.spec.config);
    const Runs behind = made.behind(of_config, newest_of(row));
    const auto [place, is_new] = known_sets.try_emplace(behind);
    std::map<std::string, MadeSet>& sets = place->second;
    if (is_new) sets = sets_of(behind, ablation.table);
    const auto own = std::find_if(
        sets.begin(), sets.end(), [&](const auto& set) { return shows_one_of(row, set.second); });
    if (own == sets.end()) continue;
    const std::set<const ConfiguredRun*> named_so(of_config.begin(), of_config.end());
    const auto is_of_config = [&](const ConfiguredRun* run) { return named_so.count(run) > 0; };
    Runs of_row;  // under another name there may be seeds that it lacks
    std::copy_if(own->second.runs.begin(),
                 own->second.runs.end(),
                 std::back_inserter(of_row),
                 [&](const ConfiguredRun* run) {
                   return is_of_config(run) && has_value_shown(*run, row, ablation.table);
                 });
    row.sets.shown = set_of(conditions_text(own->second, ablation.table),
                            of_row,
                            options.repetitions,
                            ablation.table.best_of);
    row.sets.tuned_undeclared = tuning.undeclared_seeds_of(own->second);
    row.sets.others = shown_before(own->second, row, declared);
    if (!row.sets.others.empty()) row.sets.differ_in.insert(declared.best_of->key);
    std::map<std::string, LoneRuns> lone;  // by the table that accounts for them
    for (const auto& [key, set] : sets) {
      const std::set<int64_t> telling = telling_seeds(set, row);
      if (shows_one_of(row, set) || telling.empty() || tuning.has_tried(set, own->second, telling))
        continue;
      // Rows of several values that were run together are tested together, also by a command that
      // gives each seed to all of them: each was begun before two seeds of another were known.
      const bool has_row = has_own_row(set, row, ablation);
      if (has_row
              ? !were_known_at(row.sets.shown.first_run, set, std::min<size_t>(2, telling.size()))
              : is_shown_by_another(set, row, ablation))
        continue;
      RunSet other = set_of(conditions_text(set, ablation.table), set.runs);
      std::string table;
      if (other.conditions != row.sets.shown.conditions) {
        const Declarations::Account account = declarations.of(set, own->second, row);
        if (account.made_for == MadeFor::tuning) continue;
        table = account.table;
      } else {
        table = declarations.of_own_length(set, own->second);
      }
      const auto differences = run::identity_differences(set.identity, own->second.identity);
      if (telling.size() < 2) {
        // No row can show such a run beside others. What it may choose are settings, which seeds of
        // their own test as if nothing were known.
        if (!is_seed_of(row, *telling.begin())) continue;
        lone[table].add(set, *telling.begin());
        for (const auto& difference : differences) lone[table].differ_in.insert(difference.what);
        continue;
      }
      if (!table.empty()) {
        if (is_before(other, row.sets.shown)) row.sets.tables.insert(table);
        continue;
      }
      if (is_trained_with(other, row.sets.shown)) {
        ++row.sets.swept_sets;
        for (const auto& difference : differences)
          if (difference.what != ablation.table.by) row.sets.swept.insert(difference.what);
      }
      bool is_of_other_model = made.is_of_other_model(set.runs.front());
      for (const auto& difference : differences) {
        row.sets.differ_in.insert(difference.what);
        if (!is_of_config(set.runs.front()) && starts_with(difference.what, "model."))
          is_of_other_model = true;
      }
      if (is_of_other_model) other.conditions.clear();
      row.sets.others.push_back(std::move(other));
      if (!has_row) row.sets.unfinished += unfinished_seeds_of(set);
    }
    for (auto& [table, runs] : lone) {
      for (const std::string& second_run : runs.sets()) {
        const RunSet set = {row.sets.shown.conditions, second_run};
        if (!table.empty()) {
          if (is_before(set, row.sets.shown)) row.sets.tables.insert(table);
          continue;
        }
        row.sets.others.push_back(set);
        row.sets.differ_in.insert(runs.differ_in.begin(), runs.differ_in.end());
      }
    }
  }
}

}  // namespace forge::tables
