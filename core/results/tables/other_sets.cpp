#include "core/results/tables/other_sets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/statistics/significance.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/repetitions.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/table_design.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

/// All runs of a set, whatever became of them.
struct MadeSet {
  run::Identity identity;
  std::string group;
  Runs runs;
};

/// Whether it was trained with another number of held-out rows than the table's runs are.
bool holds_other_rows(const ConfiguredRun& run, const BestOfSpec& best_of) {
  const nlohmann::json* const rows = find_value(run.config, "train.validation_rows");
  return best_of.validation_rows > 0 && rows && *rows != best_of.validation_rows;
}

/// What the run has another value of than the table varies it over.
std::vector<std::string> keys_not_varied(const ConfiguredRun& run, const TableSpec& table) {
  std::vector<std::string> keys;
  if (table.best_of && !lists_value_of(*table.best_of, run)) keys.push_back(table.best_of->key);
  if (table.best_of && holds_other_rows(run, *table.best_of))
    keys.push_back("train.validation_rows");
  if (table.budget && !table.best_of) keys.push_back("train.max_steps");
  return keys;
}

/// What runs of a set have in common. A table varies no other values than those that it lists, and
/// of a row with a budget one length: who tries others does what the table does not.
run::Identity identity_of_try(const ConfiguredRun& run, const TableSpec& table) {
  run::Identity identity = identity_of_set(run, table);
  for (const std::string& key : keys_not_varied(run, table))
    if (const nlohmann::json* const value = find_value(run.config, key))
      identity.experiment[key] = *value;
  return identity;
}

/// The sets that runs make up, by their keys.
std::map<std::string, MadeSet> sets_of(const Runs& runs, const TableSpec& table) {
  std::map<std::string, MadeSet> sets;
  for (const ConfiguredRun* run : runs) {
    run::Identity identity = identity_of_try(*run, table);
    MadeSet& set = sets[run::identity_hash(identity)];
    set.identity = std::move(identity);
    set.group = group_of(*run, table);
    set.runs.push_back(run);
  }
  return sets;
}

bool shows_one_of(const AblationRow& row, const MadeSet& set) {
  return std::any_of(set.runs.begin(), set.runs.end(), [&](const ConfiguredRun* run) {
    const store::RunSummary* shown = shown_of_seed(row, run->summary.seed);
    return shown && shown->id == run->summary.id;
  });
}

/// Whether they have one loss, and one value of each score that both have: settings of the
/// evaluation change scores alone.
bool have_same_result(const store::RunSummary& a, const store::RunSummary& b) {
  return have_same_loss(a, b) &&
         std::none_of(a.scores.begin(), a.scores.end(), [&](const auto& score) {
           const auto other = b.scores.find(score.first);
           return other != b.scores.end() && (other->second.value != score.second.value ||
                                              other->second.count != score.second.count);
         });
}

/// The seeds that told something which the row does not show.
std::set<int64_t> telling_seeds(const MadeSet& set, const AblationRow& row) {
  std::set<int64_t> seeds;
  for (const ConfiguredRun* run : set.runs) {
    const store::RunSummary& summary = run->summary;
    if (!tells(*run)) continue;
    const store::RunSummary* shown = shown_of_seed(row, summary.seed);
    if (shown && is_completed(run) && have_same_result(*shown, summary)) continue;
    seeds.insert(summary.seed);
  }
  return seeds;
}

/// Tells which runs tune the rows of a table, as its file declares it.
class Tuning {
 public:
  /// Both must outlive it.
  Tuning(const TableSpec& declared, const FirstRuns& repetitions)
      : declared_(declared), repetitions_(repetitions) {}

  /// Whether the run was made for it, and so was the one that it repeats.
  bool has(const ConfiguredRun& run) const {
    const auto first = repetitions_.find(run.summary.id);
    return is_tuning_run(declared_, run.summary) &&
           (first == repetitions_.end() || is_tuning_run(declared_, first->second));
  }

  /// Whether the set is one more value that was tried by seeds which no row shows.
  bool has_tried(const MadeSet& set, const MadeSet& own, const std::set<int64_t>& telling) const {
    if (!declared_.best_of) return false;
    const auto differences = run::identity_differences(set.identity, own.identity);
    const auto is_of_key = [&](const auto& difference) {
      return difference.what == declared_.best_of->key;
    };
    const auto tells_nothing_else = [&](const ConfiguredRun* run) {
      return telling.count(run->summary.seed) == 0 || !tells(*run) || has(*run);
    };
    return std::all_of(differences.begin(), differences.end(), is_of_key) &&
           std::all_of(set.runs.begin(), set.runs.end(), tells_nothing_else);
  }

  /// The seeds of the row's set that the table calls tuning seeds, and had not when it was run with
  /// them.
  std::set<int64_t> undeclared_seeds_of(const MadeSet& own) const {
    std::set<int64_t> seeds;
    for (const ConfiguredRun* run : own.runs) {
      const int64_t seed = run->summary.seed;
      if (declared_.best_of && is_tuning_seed(*declared_.best_of, seed) && tells(*run) &&
          !has(*run))
        seeds.insert(seed);
    }
    return seeds;
  }

 private:
  const TableSpec& declared_;
  const FirstRuns& repetitions_;
};

/// Whether the run has the value of best_of that the row shows, and a seed that it may show.
bool has_value_shown(const ConfiguredRun& run, const AblationRow& row, const TableSpec& table) {
  if (!table_tuned_by(run.summary, table).empty()) return false;
  if (!table.best_of) return true;
  return number_of(run.config, table.best_of->key) == row.varied &&
         !is_tuning_seed(*table.best_of, run.summary.seed);
}

/// Whether the run recorded the table as it is now. Runs of earlier versions recorded none: of
/// these nothing is said.
bool has_recorded(const TableSpec& declared, const ConfiguredRun& run) {
  if (run.summary.planned_tables.empty()) return true;
  const nlohmann::json planned = parse_json(run.summary.planned_tables);
  const auto found = planned.find(declared.name);
  return found != planned.end() && is_design_of(declared, found->get<std::string>());
}

using Clock = const std::string& (*)(const store::RunSummary&);

/// The time of the run: one of `repetitions` has that of its first one, unless best_of may choose
/// another value by it.
const std::string& time_of(const store::RunSummary& run,
                           Clock clock,
                           const FirstRuns& repetitions,
                           const std::optional<BestOfSpec>& best_of) {
  const auto found = repetitions.find(run.id);
  if (found == repetitions.end() || !have_same_loss(found->second, run)) return clock(run);
  const store::RunSummary& first = found->second;
  const bool chooses_anew = best_of && decides(*best_of, run.seed) &&
                            first.metric(best_of->by) != run.metric(best_of->by);
  return chooses_anew ? clock(run) : std::min(clock(run), clock(first));
}

/// Those of the runs of each seed, in order.
std::vector<std::string> times_of_seeds(const Runs& runs,
                                        Clock clock,
                                        const FirstRuns& repetitions,
                                        const std::optional<BestOfSpec>& best_of) {
  std::map<int64_t, std::string> first_of_seed;
  for (const ConfiguredRun* run : runs) {
    if (!tells(*run)) continue;
    const std::string& time = time_of(run->summary, clock, repetitions, best_of);
    const auto [found, is_new] = first_of_seed.emplace(run->summary.seed, time);
    if (!is_new) found->second = std::min(found->second, time);
  }
  std::vector<std::string> times;
  for (const auto& [seed, time] : first_of_seed) times.push_back(time);
  std::sort(times.begin(), times.end());
  return times;
}

RunSet set_of(std::string conditions,
              const Runs& runs,
              const FirstRuns& repetitions = {},
              const std::optional<BestOfSpec>& best_of = {}) {
  const auto times_by = [&](Clock clock) {
    std::vector<std::string> times = times_of_seeds(runs, clock, repetitions, best_of);
    times.resize(std::max<size_t>(2, times.size()));  // "" where there is none
    return times;
  };
  const std::vector<std::string> made = times_by(made_at);
  return {std::move(conditions), made[1], times_by(begun_at)[1], made[0]};
}

const std::string& begun(const RunSet& set) {
  return set.second_begun.empty() ? set.second_run : set.second_begun;
}

/// Whether a set was there before the other one, or at the same time: here, or where both were made
/// before they were imported, in whatever order.
bool is_before(const RunSet& set, const RunSet& other) {
  return set.second_run <= other.second_run || begun(set) <= begun(other);
}

/// That of the later one of two which can be compared only when both are there.
RunSet together(const RunSet& a, const RunSet& b) {
  return {"", std::max(a.second_run, b.second_run), std::max(begun(a), begun(b))};
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

/// Whether at least `seeds` seeds of the set had reported a loss at that time.
bool were_known_at(const std::string& time, const MadeSet& set, size_t seeds) {
  std::set<int64_t> known;
  for (const ConfiguredRun* run : set.runs)
    if (tells(*run) && store::is_final(run->summary.status) && told_at(run->summary) <= time)
      known.insert(run->summary.seed);
  return known.size() >= seeds;
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

/// Seeds that were planned or begun and did not complete; 0 while some may.
size_t unfinished_seeds_of(const MadeSet& set) {
  std::set<std::string> planned, completed;
  for (const ConfiguredRun* run : set.runs) {
    const store::RunSummary& summary = run->summary;
    if (!store::is_final(summary.status)) return 0;
    for (const std::string& seed : split(summary.planned_seeds, ',')) planned.insert(seed);
    planned.insert(std::to_string(summary.seed));
    if (is_completed(run)) completed.insert(std::to_string(summary.seed));
  }
  planned.erase("");
  return planned.size() - completed.size();
}

/// The table's conditions as a set meets them, and its group. Each command has a program of its
/// own.
std::string conditions_text(const MadeSet& set, const TableSpec& table) {
  const auto completed = std::find_if(set.runs.begin(), set.runs.end(), is_completed);
  const ConfiguredRun& run = completed == set.runs.end() ? *set.runs.front() : **completed;
  std::string text = set.group + '\n';
  if (table.best_of)  // rows are the best of the same values
    for (const std::string& key : keys_not_varied(run, table))
      text += key + '\n' + json_text(store::value_of(run, key)) + '\n';
  for (const Condition& condition : conditions_of(run, table)) {
    if (!is_program(condition)) text += condition.name + '\n' + condition.value + '\n';
  }
  return text;
}

/// Whether all runs of the set recorded the table as it is now: it was declared before them.
bool knew(const MadeSet& set, const std::string& name, const std::string& design) {
  return std::all_of(set.runs.begin(), set.runs.end(), [&](const ConfiguredRun* run) {
    if (run->summary.planned_tables.empty()) return false;
    const nlohmann::json planned = parse_json(run->summary.planned_tables);
    const auto found = planned.find(name);
    return found != planned.end() && starts_with(found->get<std::string>(), design);
  });
}

/// Whether the config by itself was that when the set was made, or that is not recorded.
bool had_config(const MadeSet& set, const std::string& own) {
  return std::all_of(set.runs.begin(), set.runs.end(), [&](const ConfiguredRun* run) {
    const std::string& then = run->summary.planned_config;
    return then.empty() || then == own;
  });
}

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
  Declarations(const TableSpec& own, const AblationOptions& options)
      : own_{&own, design_key(own)}, current_config_(options.current_config) {
    for (const TableSpec& table : options.project_tables)
      if (table.name != own.name) others_.push_back({&table, design_key(table)});
  }

  struct Account {
    MadeFor made_for = MadeFor::what_it_finds;
    std::string table = "";
  };

  /// `set` and `shown` are of the row's config and meet different conditions of the table.
  Account of(const MadeSet& set, const MadeSet& shown, const AblationRow& row) const {
    for (const bool may_extend : {false, true}) {
      for (const Declared& other : others_) {
        if (!varies_all(*other.table, set, shown) || !could_show(*other.table, set, may_extend) ||
            !knew(set, other.table->name, other.design))
          continue;
        if (is_tuning(*other.table, set, row))
          return {shows_tuning_seeds(row) ? MadeFor::another_table : MadeFor::tuning,
                  other.table->name};
        if (knew(shown, other.table->name, other.design) &&
            knew(set, own_.table->name, own_.design) && was_to_be_shown(shown, set))
          return {MadeFor::another_table, other.table->name};
      }
    }
    const std::string plain = differ_as_tuned(set, shown) ? of_config_itself(set, shown) : "";
    return plain.empty() ? Account() : Account{MadeFor::another_table, plain};
  }

  /// Of a table that trains each row with a budget: another one of the project for which the config
  /// was run as it is, to the end of its own length; "" for none.
  std::string of_own_length(const MadeSet& set, const MadeSet& shown) const {
    const TableSpec& own = *own_.table;
    const bool has_exact_length = own.budget && own.budget->equal != Budget::time && !own.best_of;
    return has_exact_length && differ_in_length(set, shown) ? of_config_itself(set, shown) : "";
  }

 private:
  struct Declared {
    const TableSpec* table;
    std::string design;
  };

  static bool varies_all(const TableSpec& table, const MadeSet& set, const MadeSet& shown) {
    const auto differences = run::identity_differences(set.identity, shown.identity);
    return std::all_of(differences.begin(), differences.end(), [&](const auto& difference) {
      return is_varied_by(table, set.runs.front()->summary.config, difference.what);
    });
  }

  /// Whether the table may show the set: of several that vary one key each has values of its own,
  /// and some go on beyond them.
  static bool could_show(const TableSpec& table, const MadeSet& set, bool may_extend) {
    if (!table.best_of) return true;
    const ConfiguredRun& run = *set.runs.front();
    const bool is_its_value =
        lists_value_of(*table.best_of, run) || (may_extend && table.best_of->extend);
    return is_its_value && !holds_other_rows(run, *table.best_of);
  }

  /// Rows by the key of best_of show with what the value is chosen.
  bool shows_tuning_seeds(const AblationRow& row) const {
    return own_.table->best_of &&
           std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
             return is_tuning_seed(*own_.table->best_of, run.seed);
           });
  }

  /// Whether `shown` was the row that this table was to show when the set was made, and is no value
  /// that the other table found: the config by itself, but for what this table varies. Who reads a
  /// table chooses the values of --by, one after another.
  bool was_to_be_shown(const MadeSet& shown, const MadeSet& set) const {
    const ConfiguredRun& run = *shown.runs.front();
    if (!own_.table->best_of && !own_.table->budget && own_.table->by.empty())
      return had_config(set, run::config_key(run.config));
    if (!current_config_) return false;
    const nlohmann::json current =
        current_config_(run.summary.config, run.summary.profile, run.summary.device_type);
    if (!current.is_object()) return false;
    const std::string own = run::config_key(current);
    const auto differences = run::identity_differences(set.identity, shown.identity);
    return had_config(set, own) && had_config(shown, own) &&
           std::all_of(differences.begin(), differences.end(), [&](const auto& difference) {
             const std::string& key = difference.what;
             if (key == own_.table->by) return false;
             if (is_varied_by(*own_.table, run.summary.config, key)) return true;
             const nlohmann::json* const now = find_value(current, key);
             const nlohmann::json* const value = find_value(run.config, key);
             return now && value && *now == *value;
           });
  }

  /// Another table of the project for which the config was run as it is; "" for none. There is one
  /// such set alone: that of the config as it was when the row's runs were planned. It must differ
  /// from the row so that it can stand in none here.
  std::string of_config_itself(const MadeSet& set, const MadeSet& shown) const {
    if (!is_of_config_itself(set, shown) || !knew(set, own_.table->name, own_.design)) return "";
    for (const auto& [table, design] : others_) {
      const bool varies = table->best_of || table->budget;
      if (!varies && has_row(*table, set) && knew(set, table->name, design) &&
          knew(shown, table->name, design))
        return table->name;
    }
    return "";
  }

  /// Whether they differ in the rows that this table holds out of the evaluation to choose a value,
  /// and in nothing else but that value.
  bool differ_as_tuned(const MadeSet& set, const MadeSet& shown) const {
    const std::optional<BestOfSpec>& best_of = own_.table->best_of;
    if (!best_of || best_of->validation_rows == 0) return false;
    const auto differences = run::identity_differences(set.identity, shown.identity);
    const auto is_held_out = [](const auto& difference) {
      return difference.what == "train.validation_rows";
    };
    return std::any_of(differences.begin(), differences.end(), is_held_out) &&
           std::all_of(differences.begin(), differences.end(), [&](const auto& difference) {
             return is_held_out(difference) || difference.what == best_of->key;
           });
  }

  static bool differ_in_length(const MadeSet& set, const MadeSet& shown) {
    const auto differences = run::identity_differences(set.identity, shown.identity);
    return !differences.empty() &&
           std::all_of(differences.begin(), differences.end(), [](const auto& difference) {
             return is_length(difference.what);
           });
  }

  /// Whether the set's runs are those of the config by itself, without --set, and it was the same
  /// when the shown runs were planned.
  static bool is_of_config_itself(const MadeSet& set, const MadeSet& shown) {
    const store::RunSummary& first = shown.runs.front()->summary;
    const auto is_of_it = [&](const ConfiguredRun* run) {
      return run->summary.config == first.config && !first.planned_config.empty() &&
             run->summary.planned_config == first.planned_config;
    };
    return std::all_of(shown.runs.begin(), shown.runs.end(), is_of_it) &&
           std::all_of(set.runs.begin(), set.runs.end(), [&](const ConfiguredRun* run) {
             return is_of_it(run) && run::config_key(run->config) == first.planned_config;
           });
  }

  static bool has_row(const TableSpec& table, const MadeSet& set) {
    const std::string& config = set.runs.front()->summary.config;
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const RowSpec& row) {
      return row.config == config;
    });
  }

  static bool is_tuning(const TableSpec& table, const MadeSet& set, const AblationRow& row) {
    if (!table.best_of) return false;
    const auto is_one = [&](int64_t seed) { return is_tuning_seed(*table.best_of, seed); };
    return std::all_of(set.runs.begin(),
                       set.runs.end(),
                       [&](const ConfiguredRun* run) { return is_one(run->summary.seed); }) &&
           std::none_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
             return is_one(run.seed);
           });
  }

  Declared own_;
  CurrentConfig current_config_;
  std::vector<Declared> others_;
};

/// Sets, or ways to put sets of two rows together, beside what is shown.
struct Others {
  size_t before = 0;  ///< made before it, or at the same time
  size_t since = 0;

  void add(const RunSet& set, const RunSet& shown) { ++(is_before(set, shown) ? before : since); }

  void take_more(const Others& other) {
    before = std::max(before, other.before);
    since = std::max(since, other.since);
  }
};

/// The ways in which sets of the two rows can stand in one table, beside the shown one.
Others ways_of(const RunSets& a, const RunSets& b, const RunSet& shown) {
  const auto all_of = [](const RunSets& sets) {
    std::vector<RunSet> all = sets.others;
    all.push_back(sets.shown);
    return all;
  };
  const std::vector<RunSet> of_a = all_of(a), of_b = all_of(b);
  Others found;
  for (const RunSet& own : of_a) {
    for (const RunSet& other : of_b) {
      const bool is_shown = &own == &of_a.back() && &other == &of_b.back();
      if (!is_shown && !own.conditions.empty() && own.conditions == other.conditions)
        found.add(together(own, other), shown);
    }
  }
  return found;
}

/// So many other sets could have been compared: as many as one of the rows has, or where sets of
/// two rows go together in more ways than the shown one, as many as these.
Others others_of(const std::vector<const AblationRow*>& rows) {
  RunSet shown;
  for (const AblationRow* row : rows) shown = together(shown, row->sets.shown);
  Others most;
  for (const AblationRow* row : rows) {
    Others own;
    for (const RunSet& other : row->sets.others) own.add(other, shown);
    most.take_more(own);
    for (const AblationRow* other : rows)
      if (other != row) most.take_more(ways_of(row->sets, other->sets, shown));
  }
  return most;
}

std::set<std::string> tables_declared_together(const std::vector<const AblationRow*>& rows) {
  std::set<std::string> tables;
  for (const AblationRow* row : rows)
    tables.insert(row->sets.tables.begin(), row->sets.tables.end());
  return tables;
}

/// "Canon-A", in a table with rows by a key "Canon-A (0.001)".
std::string name_of(const AblationRow& row) {
  return row.group.empty() ? row.spec.name : row.spec.name + " (" + row.group + ")";
}

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

double SetPlace::factor() const {
  return statistics::set_factor(number) * static_cast<double>(1 + tables);
}

SetPlace place_of(const std::vector<const AblationRow*>& rows) {
  return {1 + others_of(rows).before, tables_declared_together(rows).size()};
}

SetupEntry describe_other_sets(const Ablation& ablation) {
  std::vector<std::string> counts, sentences;
  Others most;
  std::set<std::string> keys, tables;
  std::vector<std::string> later_rows;
  const auto comparisons = comparisons_of(ablation);
  for (const auto& rows : comparisons) {
    const Others others = others_of(rows);
    most.take_more(others);
    if (others.before > 0) later_rows.push_back(name_of(*rows.front()));
    for (const AblationRow* row : rows)
      keys.insert(row->sets.differ_in.begin(), row->sets.differ_in.end());
    const std::set<std::string> declared = tables_declared_together(rows);
    tables.insert(declared.begin(), declared.end());
  }
  if (most.before + most.since > 0) {
    const std::string differ_in = first_of({keys.begin(), keys.end()});
    const std::string of_rows =
        later_rows.size() == comparisons.size() ? "" : " for " + first_of(later_rows);
    std::vector<std::string> parts;
    if (most.before > 0)
      parts.push_back(counted(most.before, "earlier set") + " of runs counted" + of_rows);
    if (most.since > 0) parts.push_back(counted(most.since, "set") + " of runs made since");
    counts.push_back(join(parts, ", ") + " (" + differ_in + ")");
    sentences.push_back(counted(most.before + most.since, "other set") +
                        " of runs of these configs, under these names or older ones, shown or not, "
                        "could stand here "
                        "(they differ in " +
                        differ_in + "), " + std::to_string(most.before) +
                        " of them made before those that are compared" +
                        (most.before > 0 ? of_rows : "") + ": each of these counts as a look");
  }
  if (!tables.empty()) {
    const std::string names = join({tables.begin(), tables.end()}, ", ");
    counts.push_back("runs of " + counted(tables.size(), "other table") + " counted (" + names +
                     ")");
    sentences.push_back("before these runs others of the same configs were made for " + names +
                        ", declared together with this table: p is multiplied by " +
                        std::to_string(1 + tables.size()));
  }
  if (counts.empty()) return {};
  return {"Other runs", join(sentences, "; "), join(counts, ", ")};
}

std::string rough_experiment_key(const store::RunSummary& run) {
  return join({run.data_fingerprint,
               run.tokenizer_fingerprint,
               run.backend,
               run.program,
               std::to_string(run.numerics_version),
               std::to_string(run.parameters),
               std::to_string(run.max_steps),
               std::to_string(run.tokens_per_step)},
              " ");
}

void add_other_seeds(const std::vector<ConfiguredRun>& runs,
                     const AblationOptions& options,
                     Ablation& ablation) {
  std::map<std::string, Runs> by_rough_key;
  std::map<std::string, const ConfiguredRun*> by_id;
  for (const auto* list : {&runs,
                           &options.filtered_out,
                           &options.archived,
                           &options.other_models,
                           &options.elsewhere}) {
    for (const ConfiguredRun& run : *list) {
      if (!is_completed(&run)) continue;
      by_rough_key[rough_experiment_key(run.summary)].push_back(&run);
      by_id[run.summary.id] = &run;
    }
  }
  std::map<const ConfiguredRun*, std::string> known_keys;
  const auto key_of = [&](const ConfiguredRun* run) -> const std::string& {
    const auto [key, is_new] = known_keys.try_emplace(run);
    if (is_new) key->second = experiment_key(*run);
    return key->second;
  };
  for (AblationRow& row : ablation.rows) {
    if (row.runs.size() < 2) continue;
    const ConfiguredRun& shown = *by_id.at(row.run->id);
    const std::string own = key_of(&shown);
    std::set<std::string> experiments = {own}, rough_keys = {rough_experiment_key(shown.summary)};
    for (const std::string& id : row.repeats) {
      const auto first = by_id.find(id);
      if (first == by_id.end()) continue;
      experiments.insert(key_of(first->second));
      rough_keys.insert(rough_experiment_key(first->second->summary));
    }
    for (const std::string& rough : rough_keys) {
      for (const ConfiguredRun* run : by_rough_key[rough]) {
        const int64_t seed = run->summary.seed;
        if (shown_of_seed(row, seed) || is_tuning_run(ablation.table, run->summary)) continue;
        const std::string& experiment = key_of(run);
        const bool has_own_name =
            run->summary.project == shown.summary.project && run->summary.config == row.spec.config;
        // Of its own name and experiment they are shown, or said why they are not.
        if (experiments.count(experiment) > 0 && !(has_own_name && experiment == own))
          row.other_seeds.insert(seed);
      }
    }
  }
}

SetupEntry describe_other_seeds(const Ablation& ablation) {
  size_t seeds = 0;
  for (const AblationRow& row : ablation.rows)
    if (row.is_comparable()) seeds += row.other_seeds.size();
  if (seeds == 0) return {};
  return {"Other seeds",
          "the same experiments were also run with " + counted(seeds, "other seed") +
              " under other names or settings that change no number, and the table shows none of "
              "these: its seeds may have been chosen by what they found",
          counted(seeds, "seed") + " of these experiments not shown"};
}

}  // namespace forge::tables
