#include "core/results/tables/completeness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/comparable_metrics.h"
#include "core/results/tables/other_budgets.h"
#include "core/results/tables/other_seeds.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/set_place.h"
#include "core/results/tables/table_design.h"
#include "core/results/tables/turns.h"

namespace forge::tables {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

namespace {

/// The seeds that were planned when the second one was run, with the first one; none without a
/// plan.
std::set<std::string> plan_of(std::vector<store::RunSummary> runs) {
  if (runs.size() < 2) return {};
  std::sort(runs.begin(), runs.end(), [](const store::RunSummary& a, const store::RunSummary& b) {
    return std::tie(begun_at(a), a.id) < std::tie(begun_at(b), b.id);
  });
  const std::vector<std::string> planned = split(runs[1].planned_seeds, ',');
  if (runs[1].planned_seeds.empty() || planned.size() < 2) return {};
  std::set<std::string> seeds(planned.begin(), planned.end());
  seeds.insert(std::to_string(runs[0].seed));
  return seeds;
}

}  // namespace

bool is_tuning_seed_of(const AblationRow& row, const std::string& seed) {
  return std::any_of(row.points.begin(), row.points.end(), [&](const SweepPoint& point) {
    return std::any_of(point.runs.begin(), point.runs.end(), [&](const store::RunSummary& run) {
      return std::to_string(run.seed) == seed && !shown_of_seed(row, run.seed);
    });
  });
}

namespace {

/// Counts the seeds that the command of the row's second run asked for, with that of the first run,
/// and those of them that the row does not show. Below 2: nobody planned.
void set_plan(AblationRow& row) {
  const std::set<std::string> planned = plan_of(row.first_runs);
  std::set<std::string> shown;
  for (const store::RunSummary& run : row.runs) shown.insert(std::to_string(run.seed));
  row.planned_seeds = planned.size();
  row.missing_seeds = static_cast<size_t>(
      std::count_if(planned.begin(), planned.end(), [&](const std::string& seed) {
        return shown.count(seed) == 0 && !is_tuning_seed_of(row, seed);
      }));
}

/// Runs that belong to the row's sample, but for their seed, whatever became of them.
Runs of_its_sample(const std::vector<ConfiguredRun>& runs,
                   const ConfiguredRun& shown_run,
                   const AblationRow& row) {
  Runs own;
  if (runs.empty()) return own;
  const std::string shown = experiment_key(shown_run);
  for (const ConfiguredRun& run : runs) {
    if (run.summary.config == row.spec.config && experiment_key(run) == shown) own.push_back(&run);
  }
  return own;
}

/// Those of them that the table leaves out for their train.log_every alone, which makes no other
/// experiment.
Runs logged_otherwise(const TableSpec& table,
                      const Runs& of_table,
                      const ConfiguredRun& shown,
                      const AblationRow& row) {
  Runs own;
  const std::vector<Condition> conditions = conditions_of(shown, table);
  const auto is_left_out_for_it = [&](const ConfiguredRun& run) {
    const std::vector<std::string> reasons = violations(conditions_of(run, table), conditions);
    return reasons.size() == 1 && starts_with(reasons[0], "train.log_every ");
  };
  const auto is_tuning_run = [&](const ConfiguredRun& run) {
    return table.best_of && is_tuning_seed(*table.best_of, run.summary.seed);
  };
  const auto log_every = [](const ConfiguredRun& run) {
    const nlohmann::json* const steps = find_value(run.config, "train.log_every");
    return steps ? *steps : nlohmann::json();
  };
  for (const ConfiguredRun* run : of_table) {
    if (run->summary.config == row.spec.config && log_every(*run) != log_every(shown) &&
        group_of(*run, table) == row.group && !is_tuning_run(*run) && is_left_out_for_it(*run) &&
        experiment_key(*run) == experiment_key(shown))
      own.push_back(run);
  }
  return own;
}

/// The seeds of completed ones that the row does not show at all, and those that it shows another
/// result of.
struct NotShown {
  std::set<int64_t> seeds, results;
};

NotShown not_shown_of(const Runs& hidden, const AblationRow& row) {
  NotShown found;
  for (const ConfiguredRun* run : hidden) {
    if (!is_completed(run)) continue;
    const store::RunSummary* shown = shown_of_seed(row, run->summary.seed);
    if (!shown) {
      found.seeds.insert(run->summary.seed);
    } else if (!have_same_loss(*shown, run->summary)) {
      found.results.insert(run->summary.seed);
    }
  }
  return found;
}

/// What hidden runs change of the row's history: a run that is hidden was made all the same.
void remember_hidden(const Runs& hidden, AblationRow& row) {
  for (const ConfiguredRun* run : hidden) {
    const store::RunSummary& summary = run->summary;
    const bool is_shown = shown_of_seed(row, summary.seed) != nullptr;
    if (summary.status == run::RunState::failed || summary.status == run::RunState::stopped)
      (is_shown ? row.repeated : row.ended_early).insert(summary.seed);
    if (summary.diverged != 0 && !is_shown) row.diverged.insert(summary.seed);
    for (store::RunSummary& first : row.first_runs) {
      if (is_completed(run) && first.seed == summary.seed &&
          std::tie(begun_at(summary), summary.id) < std::tie(begun_at(first), first.id))
        first = summary;
    }
  }
}

std::set<std::string> ids_of(const std::vector<store::RunSummary>& runs) {
  std::set<std::string> ids;
  for (const store::RunSummary& run : runs) ids.insert(run.id);
  return ids;
}

/// The row's first runs are those that found first what they, or the runs shown, found.
void trace_back(const FirstRuns& repetitions, AblationRow& row) {
  for (store::RunSummary& first : row.first_runs) {
    for (const std::string& id : {first.id, shown_of_seed(row, first.seed)->id}) {
      const auto found = repetitions.find(id);
      if (found != repetitions.end() && begun_at(found->second) < begun_at(first))
        first = found->second;
    }
  }
}

/// Seeds with the loss of another to the last bit, as a program gives that draws from a few cases
/// only. Numbers of a few digits may be equal by chance (statistics::rounding_step).
size_t copies_in(const AblationRow& row) {
  const std::vector<double> losses = values_of(row, results::eval_loss_name);
  const bool are_finite =
      std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (!are_finite || statistics::rounding_step(losses) > 0) return 0;
  return losses.size() - std::set<double>(losses.begin(), losses.end()).size();
}

/// The value of best_of of which the hidden run would decide; null where it decides of none, or
/// another run of its seed completed.
SweepPoint* point_decided_by(const ConfiguredRun& hidden,
                             const BestOfSpec& best_of,
                             AblationRow& row) {
  const int64_t seed = hidden.summary.seed;
  if (!decides(best_of, seed) || hidden.summary.config != row.spec.config ||
      !why_not_chosen(best_of, hidden).empty())
    return nullptr;
  const double value = number_of(hidden.config, best_of.key);
  for (SweepPoint& point : row.points) {
    const bool has_it = std::any_of(
        point.runs.begin(), point.runs.end(), [&](const auto& own) { return own.seed == seed; });
    if (point.value == value && !has_it) return &point;
  }
  return nullptr;
}

/// Leaves of the values that diverged those of which runs that the row may show did.
void drop_other_divergences(const TableSpec& table,
                            const Runs& of_table,
                            const ConfiguredRun& shown,
                            AblationRow& row) {
  for (SweepPoint& point : row.points) {
    if (!point.has_diverged()) continue;
    const auto run = std::find_if(of_table.begin(), of_table.end(), [&](const auto* each) {
      return each->summary.id == point.run->id;
    });
    if (!are_tuned_alike(**run, shown, table)) point.diverged.clear();
  }
}

/// In what runs that tuned the row differ from those that it shows, but for the machine: who tunes
/// anew, with settings that change next to nothing, chooses among runs that are known. "" in
/// nothing.
std::string tuned_otherwise(const TableSpec& table,
                            const Runs& of_table,
                            const ConfiguredRun& shown,
                            const AblationRow& row) {
  if (table.best_of->tuning_seeds.empty()) return "";
  for (const ConfiguredRun* run : of_table) {
    const auto is_it = [&](const store::RunSummary& own) { return own.id == run->summary.id; };
    const bool has_tuned =
        std::any_of(row.points.begin(), row.points.end(), [&](const SweepPoint& point) {
          return std::any_of(point.runs.begin(), point.runs.end(), is_it);
        });
    if (!has_tuned || are_tuned_alike(*run, shown, table)) continue;
    const auto differences =
        run::identity_differences(identity_of_set(*run, table), identity_of_set(shown, table));
    return run->summary.id + " (" + differences.front().what + ")";
  }
  return "";
}

/// Marks the values of best_of of which completed runs that decide are hidden: who hid them chose.
/// Where the row shows runs, those are of its set (`shown`), and hidden runs that diverged count as
/// others do: who hides them hides nothing, for they are no best. Returns the ids of the completed.
std::set<std::string> settle_hidden_values(const std::vector<ConfiguredRun>& hidden,
                                           bool SweepPoint::*mark,
                                           const TableSpec& table,
                                           const ConfiguredRun* shown,
                                           AblationRow& row) {
  std::set<std::string> ids;
  if (!table.best_of || hidden.empty()) return ids;
  const auto set_of = [&](const ConfiguredRun& run) {
    return run::identity_hash(identity_of_set(run, table));
  };
  const std::string set = shown ? set_of(*shown) : "";
  for (const ConfiguredRun& run : hidden) {
    const bool has_diverged = shown && run.summary.diverged != 0;
    if (!is_completed(&run) && !has_diverged) continue;
    SweepPoint* const point = point_decided_by(run, *table.best_of, row);
    if (!point || group_of(run, table) != row.group) continue;
    if (is_completed(&run) && (!shown || set_of(run) == set)) {
      point->*mark = true;
      ids.insert(run.summary.id);
    }
    if (has_diverged && are_tuned_alike(run, *shown, table) &&
        point->diverged.insert(run.summary.seed).second)
      point->hides_diverged = true;
  }
  return ids;
}

/// "3 of its 8 seeds".
std::string part_of_seeds(size_t missing, const AblationRow& row) {
  return std::to_string(missing) + " of its " + std::to_string(missing + row.runs.size()) +
         " seeds";
}

}  // namespace

void check_completeness(const TableSpec& table,
                        const Runs& of_table,
                        const AblationOptions& options,
                        const ConfiguredRun* shown,
                        AblationRow& row) {
  const ConfiguredRun* const of_set = row.completed() ? shown : nullptr;
  if (of_set) drop_other_divergences(table, of_table, *of_set, row);
  settle_hidden_values(options.filtered_out, &SweepPoint::is_left_out, table, of_set, row);
  row.archived =
      settle_hidden_values(options.archived, &SweepPoint::is_archived, table, of_set, row);
  if (!row.completed()) {
    const auto is_of_row = [&](const ConfiguredRun& run) {
      return run.summary.config == row.spec.config && is_completed(&run);
    };
    row.filtered_out = static_cast<size_t>(
        std::count_if(options.filtered_out.begin(), options.filtered_out.end(), is_of_row));
    for (const ConfiguredRun& run : options.archived)
      if (is_of_row(run)) row.archived.insert(run.summary.id);
    return;
  }
  if (!table.by.empty()) row.experiment = experiment_key(*shown);
  const Runs filtered = of_its_sample(options.filtered_out, *shown, row);
  const Runs archived = of_its_sample(options.archived, *shown, row);
  const Runs logged = logged_otherwise(table, of_table, *shown, row);
  remember_hidden(filtered, row);
  remember_hidden(archived, row);
  const std::set<std::string> own = ids_of(row.first_runs);
  remember_hidden(logged, row);
  const NotShown by_filter = not_shown_of(filtered, row), by_archive = not_shown_of(archived, row),
                 by_log = not_shown_of(logged, row);
  row.filtered_out = by_filter.seeds.size();
  for (const ConfiguredRun* run : archived)
    if (is_completed(run) && by_archive.seeds.count(run->summary.seed) > 0)
      row.archived.insert(run->summary.id);
  const char* no_sample = ", and a chosen part is no sample";
  if (table.best_of) {
    const std::string reason = incomplete_choice(row, table);
    if (!reason.empty()) row.violations.push_back(reason);
    const std::string other = tuned_otherwise(table, of_table, *shown, row);
    if (!other.empty())
      row.violations.push_back("its value was chosen by runs of other settings than its own: " +
                               other);
  }
  if (!by_filter.seeds.empty())
    row.violations.push_back("--where leaves out " + part_of_seeds(by_filter.seeds.size(), row) +
                             no_sample);
  if (!by_archive.seeds.empty())
    row.violations.push_back(part_of_seeds(by_archive.seeds.size(), row) + " are archived" +
                             no_sample + " (--archived shows all)");
  if (!by_log.seeds.empty())
    row.violations.push_back(part_of_seeds(by_log.seeds.size(), row) +
                             " ran with another train.log_every" + no_sample +
                             " (repeat them: 'forge run --force')");
  std::set<int64_t> results = by_filter.results;
  results.insert(by_archive.results.begin(), by_archive.results.end());
  for (const store::RunSummary& first : row.first_runs)
    if (!have_same_loss(first, *shown_of_seed(row, first.seed))) results.insert(first.seed);
  if (row.runs.size() > 1 && !results.empty())
    row.violations.push_back(counted(results.size(), "seed") +
                             " had another result in a run that is archived or left out" +
                             no_sample);
  if (const size_t copies = copies_in(row); copies > 0)
    row.violations.push_back(
        std::to_string(copies) + " of its " + counted(row.runs.size(), "seed") +
        " have the loss of another to the last bit: they are no draws of their "
        "own");
  // A model that diverges fails, a poor run is stopped: those that remain are the better ones.
  if (row.runs.size() > 1 && !row.ended_early.empty()) {
    const bool diverged_all = row.diverged == row.ended_early;
    row.violations.push_back(part_of_seeds(row.ended_early.size(), row) +
                             (diverged_all
                                  ? " diverged, and those that remain are no sample"
                                  : " failed or were stopped, and those that remain are no sample "
                                    "(complete them: 'forge runs resume')"));
  }
  trace_back(options.repetitions, row);
  set_plan(row);
  for (const std::string& id : ids_of(row.first_runs))
    if (own.count(id) == 0) row.repeats.insert(id);
}

namespace {

/// Whether as many seeds were trained as were planned before anything could be compared.
SetupEntry describe_plan(const Ablation& ablation) {
  constexpr size_t most = std::numeric_limits<size_t>::max();
  size_t most_seeds = 0, fewest_planned = most, most_planned = 0;
  size_t unfinished = 0;
  bool is_short = false;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    unfinished += row.sets.unfinished;
    most_seeds = std::max(most_seeds, row.runs.size());
    fewest_planned = std::min(fewest_planned, row.planned_seeds);
    most_planned = std::max(most_planned, row.planned_seeds);
    is_short = is_short || row.runs.size() < row.planned_seeds || row.missing_seeds > 0;
  }
  if (most_seeds == 0) return {};
  const auto range = [](size_t low, size_t high) {
    return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  };
  if (fewest_planned < 2) {
    const std::string asked =
        ablation.table.seeds > 0
            ? "; the table asks for " + std::to_string(ablation.table.seeds) + ", its runs did not"
            : "";
    return {"Plan",
            "no number of seeds was planned before the second seed: every number of them counts as "
            "a look, and differences must be clearer" +
                asked,
            "number of seeds not planned"};
  }
  const std::string planned = range(fewest_planned, most_planned);
  if (is_short)
    return {"Plan",
            "interim: " + planned + " seeds were planned, and not all rows have them yet",
            "interim: " + planned + " seeds planned"};
  const auto comparisons = comparisons_of(ablation);
  if (std::any_of(comparisons.begin(), comparisons.end(), [](const auto& rows) {
        return look_at(rows).is_beyond_plan;
      }))
    return {"Plan",
            "reopened: " + planned +
                " seeds were planned, and others were added when these were known; differences "
                "must be clearer",
            "reopened: " + planned + " seeds planned"};
  if (unfinished > 0) {
    const std::string seeds = counted(unfinished, "seed") + " of other sets of runs";
    return {"Plan",
            planned + " seeds were planned, and all are there, but " + seeds +
                " failed, were stopped or never begun: what is shown may be the better part",
            "not as planned: " + seeds + " did not complete"};
  }
  const bool are_all =
      std::all_of(ablation.rows.begin(), ablation.rows.end(), [](const AblationRow& row) {
        return !row.completed() || (row.is_comparable() && row.runs.size() > 1);
      });
  return {"Plan",
          planned + " seeds were planned, and all " + (are_all ? "" : "of the tested rows ") +
              "are there",
          are_all ? "as planned" : "as planned where tested"};
}

/// Whether the table is as it was when its runs were made: rows, columns and conditions that are
/// chosen when results are known favour what they show.
SetupEntry describe_design(const TableSpec& declared, const Ablation& ablation) {
  const std::string& name = declared.name;
  size_t runs = 0, without = 0, other = 0;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    for (const store::RunSummary& run : row.first_runs) {
      if (run.planned_tables.empty()) continue;
      const nlohmann::json planned = parse_json(run.planned_tables);
      ++runs;
      if (!planned.contains(name)) {
        ++without;
      } else if (!is_design_of(declared, planned[name])) {
        ++other;
      }
    }
  }
  if (without + other == 0 || !declared.by.empty()) return {};
  const std::string verb = without > 0 ? "written" : "changed";
  return {"Table",
          verb + " after " + std::to_string(without + other) + " of its " + std::to_string(runs) +
              " runs were made: rows, columns and claims may have been chosen by what they show",
          "table " + verb + " after its runs"};
}

/// Whether runs are older ones, made again in a way that would hide what was known of them.
SetupEntry describe_repetitions(const Ablation& ablation) {
  size_t runs = 0;
  std::set<std::string> repeated;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    runs += row.runs.size();
    repeated.insert(row.repeats.begin(), row.repeats.end());
  }
  if (repeated.empty()) return {};
  const std::string count =
      std::to_string(repeated.size()) + " of " + counted(runs, "run") + " repeat older ones";
  return {"Repetitions",
          count + " to the last bit, under another name or with settings that change no number (" +
              first_of({repeated.begin(), repeated.end()}) +
              "): the plan, the claims and the age of the table are those of these",
          count};
}

/// Whether the table shows or tests a timing of its runs.
bool uses_timings(const TableSpec& table) {
  const auto is_timed = [&](const ClaimSpec& claim) {
    const std::vector<ClaimedMetric> metrics = metrics_of(claim, table);
    return std::any_of(metrics.begin(), metrics.end(), [&](const ClaimedMetric& claimed) {
      return is_timed_by_runs(claimed.metric, table);
    });
  };
  return is_timed_by_runs(primary_metric(table), table) ||
         std::any_of(table.claims.begin(), table.claims.end(), is_timed) ||
         std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnSpec& column) {
           return depends_on_time(column, table);
         });
}

SetupEntry describe_speeds(const Ablation& ablation) {
  if (!uses_timings(ablation.table)) return {};
  std::vector<const AblationRow*> rows;
  for (const AblationRow& row : ablation.rows)
    if (row.is_comparable()) rows.push_back(&row);
  if (const std::string why = why_repetitions_not_tested(rows); !why.empty())
    return {"Speed", why, "speeds of repeated runs not tested"};
  if (const std::string why = why_lost_speeds_not_tested(rows); !why.empty())
    return {"Speed", why, "speeds of runs trained anew not tested"};
  const Turns turns = turns_of(rows, ablation.busy);
  if (turns == Turns::one_after_another)
    return {"Speed",
            "the runs of a row were made one after another, not in turn with those of other rows: "
            "what changed on the machine meanwhile is in the differences of speeds, and in no "
            "interval ('forge bench' measures in turn, and tables show it with "
            "tokens_per_second: benchmark)",
            turns_text("speeds", turns)};
  if (turns == Turns::one_row_begins)
    return {"Speed",
            "after breaks of the machine a row's run came first so often that this by itself would "
            "seem a difference: a cold machine, or empty caches, are in the differences of speeds, "
            "and in no interval ('forge bench' "
            "measures in turn, and tables show it with tokens_per_second: benchmark)",
            turns_text("speeds", turns)};
  if (turns == Turns::hours_apart)
    return {"Speed",
            "the runs of a turn were begun more than two hours apart, in no order that forge drew: "
            "what changes on the machine within a day may come in step with the turns, and is in "
            "no interval ('forge run --table' draws the order in which it trains the rows)",
            turns_text("speeds", turns)};
  for (const auto& compared : comparisons_of(ablation))
    if (const std::string why = why_places_not_tested(compared); !why.empty())
      return {"Speed", why, "speeds of other devices not tested"};
  if (turns == Turns::one_row_first)
    return {"Speed",
            "a row's run came before another's in so many turns that this by itself would seem a "
            "difference: what changes steadily on the machine is in the differences of speeds, and "
            "in no interval",
            turns_text("speeds", turns)};
  return {};
}

/// Runs that were repeated until they completed are the better ones if what made them fail was
/// their result.
SetupEntry describe_repeated(const Ablation& ablation) {
  size_t repeated = 0, redone = 0, runs = 0;
  for (const AblationRow& row : ablation.rows) {
    for (const store::RunSummary& run : row.runs) {
      if (run.failed_attempts > 0 || row.repeated.count(run.seed) > 0) ++repeated;
      if (run.redone_losses > 0) ++redone;
    }
    runs += row.runs.size();
  }
  std::vector<std::string> sentences, counts;
  const auto add = [&](size_t count, const std::string& sentence, const std::string& words) {
    if (count == 0) return;
    const std::string of_runs = std::to_string(count) + " of " + counted(runs, "run");
    sentences.push_back(of_runs + sentence);
    counts.push_back(of_runs + words);
  };
  add(repeated,
      " completed only when repeated, after an attempt or a run of the same seed had failed or was "
      "stopped: the losses that made runs fail are not among those shown",
      " repeated after a failure");
  add(redone,
      " told other losses in an attempt that was given up: its device does not compute the same "
      "twice, and who gives attempts up for what they show chooses ('train.deterministic: true' "
      "leaves nothing to choose)",
      " had other losses in an attempt that was given up");
  if (counts.empty()) return {};
  return {"Repeated", join(sentences, "; "), join(counts, ", ")};
}

}  // namespace

std::vector<SetupEntry> describe_history(const TableSpec& declared, const Ablation& ablation) {
  std::vector<SetupEntry> entries;
  for (SetupEntry entry : {describe_plan(ablation),
                           describe_design(declared, ablation),
                           describe_repetitions(ablation),
                           describe_repeated(ablation),
                           describe_other_sets(ablation),
                           describe_other_budgets(ablation),
                           describe_other_seeds(ablation),
                           describe_speeds(ablation)})
    if (!entry.name.empty()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace forge::tables
