#include "core/results/tables/made_set.h"

#include <algorithm>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/made_runs.h"
#include "core/results/tables/run_times.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

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

}  // namespace

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

bool holds_other_rows(const ConfiguredRun& run, const BestOfSpec& best_of) {
  const nlohmann::json* const rows = find_value(run.config, "train.validation_rows");
  return best_of.validation_rows > 0 && rows && *rows != best_of.validation_rows;
}

bool shows_one_of(const AblationRow& row, const MadeSet& set) {
  return std::any_of(set.runs.begin(), set.runs.end(), [&](const ConfiguredRun* run) {
    const store::RunSummary* shown = shown_of_seed(row, run->summary.seed);
    return shown && shown->id == run->summary.id;
  });
}

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

bool were_known_at(const std::string& time, const MadeSet& set, size_t seeds) {
  std::set<int64_t> known;
  for (const ConfiguredRun* run : set.runs)
    if (tells(*run) && store::is_final(run->summary.status) && told_at(run->summary) <= time)
      known.insert(run->summary.seed);
  return known.size() >= seeds;
}

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

RunSet set_of(std::string conditions,
              const Runs& runs,
              const FirstRuns& repetitions,
              const std::optional<BestOfSpec>& best_of) {
  const auto times_by = [&](Clock clock) {
    std::vector<std::string> times = times_of_seeds(runs, clock, repetitions, best_of);
    times.resize(std::max<size_t>(2, times.size()));  // "" where there is none
    return times;
  };
  const std::vector<std::string> made = times_by(made_at);
  return {std::move(conditions), made[1], times_by(begun_at)[1], made[0]};
}

}  // namespace forge::tables
