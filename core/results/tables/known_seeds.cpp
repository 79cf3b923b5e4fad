#include "core/results/tables/known_seeds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/text.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/repetitions.h"
#include "core/results/tables/row_sample.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/table_design.h"

namespace forge::tables {
namespace {

/// A run that told of its seed. Its times are the run's own. Who imports a run knows what was told
/// until then, here; others knew what it told from its beginning on, wherever that was.
struct Telling {
  int64_t seed = 0;
  std::string_view begun, made, told;
  std::string_view run;      ///< its id
  std::string_view planned;  ///< when
  std::string_view planned_seeds;
  bool is_of_whole_plan = false;  ///< the row has all that was planned for it
};
using Tellings = std::vector<Telling>;

/// Seeds with a time of each.
using SeedTimes = std::map<int64_t, std::string_view>;

/// Whether another run had told of its seed when this one was made, or of runs that were planned
/// with the same seeds and all made, when this one was planned.
bool was_known_to(const Telling& own, const Telling& other) {
  const bool is_of_same_plan = own.is_of_whole_plan && own.planned_seeds == other.planned_seeds;
  return other.run != own.run && other.begun < own.made && other.told <= own.made &&
         !(is_of_same_plan && own.planned < other.told);
}

Telling telling_of(const store::RunSummary& run) {
  return {run.seed,
          begun_at(run),
          made_at(run),
          told_at(run),
          run.id,
          std::max<std::string_view>(run.created, run.imported),
          run.planned_seeds};
}

/// A run that goes on has told what it told before it was stopped.
bool has_told(const store::ConfiguredRun& run) {
  return tells(run) || !run.summary.first_loss.empty();
}

/// All runs of the table's configs that told something.
MadeRuns::Runs telling_runs(const MadeRuns& made, const Ablation& ablation) {
  MadeRuns::Runs of_configs;
  std::string newest;
  std::set<std::string> configs;
  for (const AblationRow& row : ablation.rows) {
    for (const store::RunSummary& run : row.runs) newest = std::max(newest, made_at(run));
    if (!configs.insert(row.spec.config).second) continue;
    const MadeRuns::Runs own = made.of_config(row.spec.config);
    of_configs.insert(of_configs.end(), own.begin(), own.end());
  }
  for (const auto& [row, times] : ablation.hidden) newest = std::max(newest, times.made);
  MadeRuns::Runs runs = made.behind(of_configs, newest);
  const auto told_nothing = [](const store::ConfiguredRun* run) { return !has_told(*run); };
  runs.erase(std::remove_if(runs.begin(), runs.end(), told_nothing), runs.end());
  return runs;
}

/// What runs told of their seeds, but for those that no row is to show.
struct Known {
  Tellings all;
  Tellings own;    ///< of runs that were not made to tune another table
  Tellings other;  ///< of those that were

  Known(const MadeRuns::Runs& runs, const TableSpec& declared) {
    for (const store::ConfiguredRun* run : runs) {
      if (is_tuning_run(declared, run->summary)) continue;
      all.push_back(telling_of(run->summary));
      (table_tuned_by(run->summary, declared).empty() ? own : other).push_back(all.back());
    }
  }
};

/// The seeds of these runs that were tuning seeds of the table when the runs were made, and are not
/// any more.
std::set<int64_t> former_tuning_seeds(const MadeRuns::Runs& runs, const TableSpec& declared) {
  const std::vector<int64_t>& shown = declared.shown_tuning_seeds;  // as the file declares them
  std::set<int64_t> seeds;
  for (const store::ConfiguredRun* run : runs) {
    const int64_t seed = run->summary.seed;
    const bool is_one_now = (declared.best_of && is_tuning_seed(*declared.best_of, seed)) ||
                            std::find(shown.begin(), shown.end(), seed) != shown.end();
    if (!is_one_now && was_tuning_seed(declared.name, run->summary)) seeds.insert(seed);
  }
  return seeds;
}

Tellings tellings_of(const std::vector<store::RunSummary>& runs) {
  Tellings tellings;
  for (const store::RunSummary& run : runs) tellings.push_back(telling_of(run));
  return tellings;
}

/// The seeds that were known when a run was made, with when the first that told of each was begun.
SeedTimes known_to(const Telling& own, const Tellings& tellings) {
  SeedTimes known;
  for (const Telling& telling : tellings) {
    if (!was_known_to(own, telling)) continue;
    const auto [found, is_new] = known.emplace(telling.seed, telling.begun);
    if (!is_new) found->second = std::min(found->second, telling.begun);
  }
  return known;
}

/// Whether the row has all that was planned for it. Of plans that wait somebody may have carried
/// out the one whose seeds were found to be the luckiest.
bool is_carried_out(const std::vector<store::RunSummary>& runs,
                    const AblationRow& row,
                    const MadeRuns::Runs& of_config) {
  const auto is_shown = [&](const std::string& seed) {
    return shown_of_seed(row, std::stoll(seed)) != nullptr;
  };
  return std::all_of(runs.begin(),
                     runs.end(),
                     [&](const store::RunSummary& run) {
                       const std::vector<std::string> planned = split(run.planned_seeds, ',');
                       return !run.planned_seeds.empty() &&
                              std::all_of(planned.begin(), planned.end(), is_shown);
                     }) &&
         std::all_of(of_config.begin(), of_config.end(), [&](const store::ConfiguredRun* run) {
           return has_told(*run) || shown_of_seed(row, run->summary.seed);
         });
}

/// The row's runs of which the seeds were known when they were made.
Tellings taken_by(const Tellings& runs, const Tellings& tellings) {
  Tellings taken;
  for (const Telling& own : runs) {
    const auto told_of_it = [&](const Telling& telling) {
      return telling.seed == own.seed && was_known_to(own, telling);
    };
    if (std::any_of(tellings.begin(), tellings.end(), told_of_it)) taken.push_back(own);
  }
  return taken;
}

/// The row's seeds that nobody passed over: it shows them, they run at the moment, or they ended
/// early, of which the row says so itself.
std::set<int64_t> begun_seeds(const AblationRow& row, const MadeRuns::Runs& of_config) {
  std::set<int64_t> seeds = row.ended_early;
  for (const store::RunSummary& run : row.runs) seeds.insert(run.seed);
  for (const store::ConfiguredRun* run : of_config)
    if (run->summary.status == run::RunState::running) seeds.insert(run->summary.seed);
  return seeds;
}

/// The seeds that the row passed over: known before those that it took, by these runs, and not
/// among those that it has begun. None where these runs did not tell of all that it took.
std::optional<std::set<int64_t>> passed_over(const std::set<int64_t>& begun,
                                             const Tellings& taken,
                                             const Tellings& tellings) {
  std::set<int64_t> seeds;
  for (const Telling& own : taken) {
    const SeedTimes known = known_to(own, tellings);
    const auto own_first = known.find(own.seed);
    if (own_first == known.end()) return std::nullopt;
    for (const auto& [other, first] : known) {
      const bool is_before = std::tie(first, other) < std::tie(own_first->second, own.seed);
      if (is_before && begun.count(other) == 0) seeds.insert(other);
    }
  }
  return seeds;
}

/// In the order in which they were made.
std::vector<AblationRow*> compared_rows(Ablation& ablation) {
  std::vector<AblationRow*> rows;
  for (AblationRow& row : ablation.rows)
    if (row.is_comparable() && row.runs.size() > 1) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const AblationRow* a, const AblationRow* b) {
    return a->sets.shown.second_run < b->sets.shown.second_run;
  });
  return rows;
}

/// Why the row's seeds may be those that its tuning left over; "" if they may not.
std::string why_left_over(const AblationRow& row) {
  const std::set<int64_t>& seeds = row.sets.tuned_undeclared;
  if (seeds.empty()) return "";
  return "it was run with " + counted(seeds.size(), "tuning seed") + " (" + seeds_text(seeds) +
         ") before the table declared them: declare tuning seeds that were not run yet";
}

/// Why the row's seeds may be the best of those that tuned it; "" if they may not.
std::string why_taken_from_tuning(const AblationRow& row, const std::set<int64_t>& former) {
  std::set<int64_t> seeds;
  for (const store::RunSummary& run : row.runs)
    if (former.count(run.seed) > 0) seeds.insert(run.seed);
  if (seeds.empty()) return "";
  return std::to_string(seeds.size()) + " of its " + counted(row.runs.size(), "seed") +
         " were tuning seeds when they were run (" + seeds_text(seeds) +
         "): run new ones, or declare these again";
}

/// Why the row's runs may be of seeds that were picked from known ones; "" if they may not, or if
/// one of `samples` has them.
std::string why_picked(const Tellings& runs,
                       const AblationRow& row,
                       const std::set<int64_t>& begun,
                       const Tellings& tellings,
                       const std::vector<const AblationRow*>& samples) {
  const Tellings taken = taken_by(runs, tellings);
  if (taken.size() < 2) return "";
  const std::set<int64_t> lacked = *passed_over(begun, taken, tellings);
  const auto has_the_same = [&](const AblationRow* other) {
    const auto of_other = passed_over(begun, taken, tellings_of(other->first_runs));
    return of_other && of_other->empty();
  };
  if (lacked.empty() || std::any_of(samples.begin(), samples.end(), has_the_same)) return "";
  return std::to_string(taken.size()) + " of its " + counted(row.runs.size(), "seed") +
         " were known when they were begun, and it lacks " + std::to_string(lacked.size()) +
         " that were known before these (" + seeds_text(lacked) +
         "): the first known seeds are compared, or new ones";
}

}  // namespace

void check_seed_choice(const MadeRuns& made, const TableSpec& declared, Ablation& ablation) {
  const MadeRuns::Runs runs = telling_runs(made, ablation);
  const Known known(runs, declared);
  const std::set<int64_t> former = former_tuning_seeds(runs, declared);
  std::vector<const AblationRow*> samples;
  for (AblationRow* row : compared_rows(ablation)) {
    std::string why = why_left_over(*row);
    if (why.empty()) why = why_taken_from_tuning(*row, former);
    const MadeRuns::Runs of_config = made.of_config(row->spec.config);
    const std::set<int64_t> begun = begun_seeds(*row, of_config);
    // Who repeats runs chooses seeds as well: those of which the numbers are known to come again.
    for (const auto* own : {&row->first_runs, &row->runs}) {
      if (!why.empty()) break;
      Tellings of_row = tellings_of(*own);
      const bool is_whole = is_carried_out(*own, *row, of_config);
      for (Telling& telling : of_row) telling.is_of_whole_plan = is_whole;
      // No row lacks what tuned another table, unless it takes of these seeds.
      const bool takes_of_others = !taken_by(of_row, known.other).empty();
      why = why_picked(of_row, *row, begun, takes_of_others ? known.all : known.own, samples);
    }
    if (why.empty()) {
      samples.push_back(row);
    } else {
      row->violations.push_back("its seeds may have been chosen: " + why);
    }
  }
}

}  // namespace forge::tables
