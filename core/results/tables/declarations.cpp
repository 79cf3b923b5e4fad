#include "core/results/tables/declarations.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/made_runs.h"
#include "core/results/tables/table_design.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;

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

bool varies_all(const TableSpec& table, const MadeSet& set, const MadeSet& shown) {
  const auto differences = run::identity_differences(set.identity, shown.identity);
  return std::all_of(differences.begin(), differences.end(), [&](const auto& difference) {
    return is_varied_by(table, set.runs.front()->summary.config, difference.what);
  });
}

/// Whether the table may show the set: of several that vary one key each has values of its own,
/// and some go on beyond them.
bool could_show(const TableSpec& table, const MadeSet& set, bool may_extend) {
  if (!table.best_of) return true;
  const ConfiguredRun& run = *set.runs.front();
  const bool is_its_value =
      lists_value_of(*table.best_of, run) || (may_extend && table.best_of->extend);
  return is_its_value && !holds_other_rows(run, *table.best_of);
}

bool differ_in_length(const MadeSet& set, const MadeSet& shown) {
  const auto differences = run::identity_differences(set.identity, shown.identity);
  return !differences.empty() &&
         std::all_of(differences.begin(), differences.end(), [](const auto& difference) {
           return is_length(difference.what);
         });
}

/// Whether the set's runs are those of the config by itself, without --set, and it was the same
/// when the shown runs were planned.
bool is_of_config_itself(const MadeSet& set, const MadeSet& shown) {
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

bool has_row(const TableSpec& table, const MadeSet& set) {
  const std::string& config = set.runs.front()->summary.config;
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const RowSpec& row) {
    return row.config == config;
  });
}

bool is_tuning(const TableSpec& table, const MadeSet& set, const AblationRow& row) {
  if (!table.best_of) return false;
  const auto is_one = [&](int64_t seed) { return is_tuning_seed(*table.best_of, seed); };
  return std::all_of(set.runs.begin(),
                     set.runs.end(),
                     [&](const ConfiguredRun* run) { return is_one(run->summary.seed); }) &&
         std::none_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
           return is_one(run.seed);
         });
}

}  // namespace

bool has_recorded(const TableSpec& declared, const ConfiguredRun& run) {
  if (run.summary.planned_tables.empty()) return true;
  const nlohmann::json planned = parse_json(run.summary.planned_tables);
  const auto found = planned.find(declared.name);
  return found != planned.end() && is_design_of(declared, found->get<std::string>());
}

bool Tuning::has(const ConfiguredRun& run) const {
  const auto first = repetitions_.find(run.summary.id);
  return is_tuning_run(declared_, run.summary) &&
         (first == repetitions_.end() || is_tuning_run(declared_, first->second));
}

bool Tuning::has_tried(const MadeSet& set,
                       const MadeSet& own,
                       const std::set<int64_t>& telling) const {
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

std::set<int64_t> Tuning::undeclared_seeds_of(const MadeSet& own) const {
  std::set<int64_t> seeds;
  for (const ConfiguredRun* run : own.runs) {
    const int64_t seed = run->summary.seed;
    if (declared_.best_of && is_tuning_seed(*declared_.best_of, seed) && tells(*run) && !has(*run))
      seeds.insert(seed);
  }
  return seeds;
}

Declarations::Declarations(const TableSpec& own, const AblationOptions& options)
    : own_{&own, design_key(own)}, current_config_(options.current_config) {
  for (const TableSpec& table : options.project_tables)
    if (table.name != own.name) others_.push_back({&table, design_key(table)});
}

Declarations::Account Declarations::of(const MadeSet& set,
                                       const MadeSet& shown,
                                       const AblationRow& row) const {
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

std::string Declarations::of_own_length(const MadeSet& set, const MadeSet& shown) const {
  const TableSpec& own = *own_.table;
  const bool has_exact_length = own.budget && own.budget->equal != Budget::time && !own.best_of;
  return has_exact_length && differ_in_length(set, shown) ? of_config_itself(set, shown) : "";
}

bool Declarations::shows_tuning_seeds(const AblationRow& row) const {
  return own_.table->best_of &&
         std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
           return is_tuning_seed(*own_.table->best_of, run.seed);
         });
}

bool Declarations::was_to_be_shown(const MadeSet& shown, const MadeSet& set) const {
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

std::string Declarations::of_config_itself(const MadeSet& set, const MadeSet& shown) const {
  if (!is_of_config_itself(set, shown) || !knew(set, own_.table->name, own_.design)) return "";
  for (const auto& [table, design] : others_) {
    const bool varies = table->best_of || table->budget;
    if (!varies && has_row(*table, set) && knew(set, table->name, design) &&
        knew(shown, table->name, design))
      return table->name;
  }
  return "";
}

bool Declarations::differ_as_tuned(const MadeSet& set, const MadeSet& shown) const {
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

}  // namespace forge::tables
