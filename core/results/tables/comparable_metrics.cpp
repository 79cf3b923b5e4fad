#include "core/results/tables/comparable_metrics.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/row_sample.h"
#include "core/results/tables/turns.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

/// Something that decides speed and memory of a run: "trained", "on a CPU, 4 threads".
struct WayOfComputing {
  const char* verb;
  std::string text;
  bool is_mixed = false;  ///< its attempts differ in it
};

/// The same entries for every run, in the order in which differences are told.
std::vector<WayOfComputing> ways_of(const store::RunSummary& run) {
  const std::string threads = run.threads > 0 ? ", " + counted(run.threads, "thread") : "";
  const std::string recompute = run.recompute.empty() ? "none" : run.recompute;
  const std::string rows =
      run.micro_batch_size ? counted(*run.micro_batch_size, "row") + " of a step" : "all rows";
  return {{"computed", "by backend " + run.backend},
          {"trained",
           "on " + (run.device_name.empty() ? run.device_type : run.device_name) + threads,
           store::is_mixed(run.device_name)},
          {"trained", "by " + store::processes_text(run), store::is_mixed(run.processes)},
          {"trained", "with train.recompute " + recompute, store::is_mixed(run.recompute)},
          {"computed", "with " + rows + " at once"}};
}

/// One of those entries over runs.
struct WayOfRuns {
  std::string verb;
  std::vector<std::string> texts;  ///< each once
  bool is_mixed = false;           ///< between the runs or within one

  std::string text() const { return verb + " " + join(texts, " and "); }
};

std::vector<WayOfRuns> ways_of(const std::vector<store::RunSummary>& runs) {
  std::vector<WayOfRuns> ways;
  for (const store::RunSummary& run : runs) {
    const std::vector<WayOfComputing> own = ways_of(run);
    ways.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      std::vector<std::string>& texts = ways[i].texts;
      ways[i].verb = own[i].verb;
      if (std::find(texts.begin(), texts.end(), own[i].text) == texts.end())
        texts.push_back(own[i].text);
      ways[i].is_mixed = own[i].is_mixed || ways[i].is_mixed || texts.size() > 1;
    }
  }
  return ways;
}

/// "v1 was trained with train.recompute mlp, base with train.recompute none"
std::string why_computed_otherwise(const AblationRow& row, const AblationRow& other) {
  for (const AblationRow* each : {&row, &other}) {
    const std::string why = why_not_one_sample(each->runs);
    if (!why.empty()) return each->spec.config + " was " + why;
  }
  const std::vector<WayOfRuns> own = ways_of(row.runs), others = ways_of(other.runs);
  for (size_t i = 0; i < std::min(own.size(), others.size()); ++i)
    if (own[i].texts != others[i].texts)
      return row.spec.config + " was " + own[i].text() + ", " + other.spec.config + " " +
             others[i].texts.front();
  return "";
}

/// Of speeds that `forge bench` measured.
std::string why_of_other_calls(const AblationRow& row, const AblationRow& other) {
  for (const AblationRow* each : {&row, &other})
    if (each->speed && !each->speed->not_comparable_because.empty())
      return "speed of " + each->spec.config + ": " + each->speed->not_comparable_because;
  return "";
}

}  // namespace

std::string why_not_one_sample(const std::vector<store::RunSummary>& runs) {
  for (const WayOfRuns& way : ways_of(runs))
    if (way.is_mixed) return way.text();
  return "";
}

std::string why_measured_otherwise(const AblationRow& row,
                                   const AblationRow& other,
                                   const std::string& metric,
                                   const TableSpec& table) {
  const bool is_of_speed =
      metric == results::tokens_per_second_name || metric == results::loss_at_equal_time_name;
  if (is_of_speed && table.tokens_per_second == SpeedSource::benchmark)
    return why_of_other_calls(row, other);
  const bool depends_on_way = is_of_speed || results::metric_named(metric).depends_on_device;
  return depends_on_way ? why_computed_otherwise(row, other) : "";
}

std::string why_not_comparable(const AblationRow& row,
                               const AblationRow& other,
                               const std::string& metric,
                               const TableSpec& table) {
  for (const AblationRow* each : {&row, &other})
    if (!each->is_comparable())
      return each->spec.config + " cannot be compared: " + join(each->violations, "; ");
  return why_measured_otherwise(row, other, metric, table);
}

std::vector<RowMetric> metrics_behind(const std::vector<Name>& names,
                                      const Ablation& ablation,
                                      const AblationRow& row) {
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
  std::vector<RowMetric> metrics;
  for (const Name& name : names) {
    const AblationRow* named = &row;
    if (name.row == Name::Row::baseline) named = baseline;
    if (name.row == Name::Row::of_config) named = find_row(ablation, name.config, row.group);
    if (named) metrics.push_back({named, name.metric});
    if (baseline && name.metric == results::loss_at_equal_time_name)
      metrics.push_back({baseline, name.metric});
  }
  return metrics;
}

std::string why_measured_otherwise(const std::vector<RowMetric>& metrics, const TableSpec& table) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const auto& [own, metric] = metrics[j];
      const auto& [other, metric_of_other] = metrics[i];
      const std::string why = why_measured_otherwise(*own, *other, metric, table);
      // What depends on the device beside what does not, such as speed over loss, compares nothing.
      if (!why.empty() && !why_measured_otherwise(*own, *other, metric_of_other, table).empty())
        return why;
    }
  }
  return "";
}

namespace {

/// The rows, each once, of whose metrics the test says so.
template <class Test>
std::vector<const AblationRow*> rows_with(const std::vector<RowMetric>& metrics, const Test& test) {
  std::vector<const AblationRow*> rows;
  for (const auto& [row, metric] : metrics)
    if (test(metric) && std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  return rows;
}

bool is_memory(const std::string& metric) {
  return metric == results::peak_memory_name || metric == results::peak_resident_name;
}

bool is_score(const std::string& metric) {
  return results::metric_named(metric).source == results::Source::task;
}

/// Whether a run that is repeated has another value of the metric though all its losses are the
/// same: a speed, and a loss within a curve, which depends on when it was evaluated.
bool is_drawn_anew(const std::string& metric, const TableSpec& table) {
  return is_timed_by_runs(metric, table) || metric == results::loss_at_equal_time_name ||
         metric == results::loss_at_equal_flops_name;
}

/// Whether such a run may have another one: the mean loss since it was last logged, memory, and
/// scores of answers that a program draws.
bool may_be_drawn_anew(const std::string& metric) {
  return metric == results::train_loss_name || is_memory(metric) || is_score(metric);
}

/// "" where what repeats an older run has the value that this one had.
std::string why_new_values_not_tested(const std::vector<RowMetric>& metrics) {
  for (const auto& [row, metric] : metrics) {
    if (!may_be_drawn_anew(metric)) continue;
    for (const store::RunSummary& first : row->first_runs) {
      const store::RunSummary* const shown = shown_of_seed(*row, first.seed);
      if (!shown || shown->id == first.id) continue;
      // Where the loss is another one, other cases were evaluated.
      if (is_score(metric) && !have_same_loss(*shown, first)) continue;
      if (shown->metric(metric) != first.metric(metric))
        return "run " + shown->id + " repeats " + first.id + " and has another " + metric +
               ", which may have been chosen";
    }
  }
  return "";
}

/// Whether another group has a row of the same experiment: its files may lie in other places.
bool is_repeated(const AblationRow& row, const Ablation& ablation) {
  return !row.experiment.empty() &&
         std::any_of(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& other) {
           return other.group != row.group && other.spec.config == row.spec.config &&
                  other.experiment == row.experiment;
         });
}

/// Rows that a key tells apart which changes no number, or has values that change none, are the
/// same runs, repeated: where a device computes other bits each time, who adds values of the key
/// draws anew. "" for other keys.
std::string why_rows_are_repetitions(const std::vector<RowMetric>& metrics,
                                     const Ablation& ablation) {
  const TableSpec& table = ablation.table;
  const auto is_of_machine = [&](const RowMetric& each) {
    return is_timed_by_runs(each.metric, table) || is_memory(each.metric);
  };
  const bool are_repetitions =
      !run::changes_numbers(table.by) ||
      std::any_of(metrics.begin(), metrics.end(), [&](const RowMetric& each) {
        return is_repeated(*each.row, ablation);
      });
  if (!are_repetitions || std::all_of(metrics.begin(), metrics.end(), is_of_machine)) return "";
  return "rows differ in " + table.by +
         " alone, which changes no loss: they are repetitions of the same runs, and a seed's first "
         "run counts (compare without --by " +
         table.by + ")";
}

/// Runs of two rows, and how many of each were trained on some devices.
struct TrainedThere {
  int64_t own = 0, own_there = 0, others = 0, others_there = 0;
  int64_t pairs = 0, sum = 0, squares = 0;  ///< of seeds of both: there or not, their differences

  TrainedThere(const AblationRow& row,
               const AblationRow& other,
               const std::set<std::string>& places)
      : own(static_cast<int64_t>(row.runs.size())),
        others(static_cast<int64_t>(other.runs.size())) {
    const auto is_there = [&](const store::RunSummary& run) {
      return static_cast<int64_t>(places.count(run.places));
    };
    for (const store::RunSummary& run : other.runs) others_there += is_there(run);
    for (const store::RunSummary& run : row.runs) {
      own_there += is_there(run);
      const store::RunSummary* const pair = shown_of_seed(other, run.seed);
      if (!pair) continue;
      const int64_t difference = is_there(run) - is_there(*pair);
      ++pairs;
      sum += difference;
      squares += difference * difference;
    }
  }

  bool is_more_of_own() const { return own_there * others > others_there * own; }

  /// Whether what sets these devices apart from the others, however large, would make a t of more
  /// than 1 by itself, in the test that compares such rows.
  bool are_far_apart() const {
    constexpr double rounding = 1 + 1e-9;
    const auto share = [](int64_t part, int64_t all) {
      return static_cast<double>(part) / static_cast<double>(all);
    };
    const auto error = [&](int64_t part, int64_t all) {
      const double p = share(part, all);
      return p * (1 - p) / static_cast<double>(std::max<int64_t>(1, all - 1));
    };
    const double apart = share(own_there, own) - share(others_there, others);
    if (apart * apart > rounding * (error(own_there, own) + error(others_there, others)))
      return true;
    if (pairs < 2 || 4 * pairs < 3 * std::max(own, others)) return false;
    return sum * sum * (pairs - 1) > pairs * squares - sum * sum;
  }
};

/// Devices of one name differ in speed, by their cooling and their place in the machine. "" where
/// what one of them, or all that trained more of the one row than of the other, is faster or slower
/// lies within the error of the difference, or where the devices are not known.
std::string why_other_places(const AblationRow& row, const AblationRow& other) {
  std::set<std::string> places, with_more;
  for (const AblationRow* each : {&row, &other})
    for (const store::RunSummary& run : each->runs) places.insert(run.places);
  if (places.count("") > 0 || row.runs.empty() || other.runs.empty()) return "";
  std::vector<std::set<std::string>> all;
  for (const std::string& place : places)
    if (TrainedThere(row, other, {place}).is_more_of_own()) {
      all.push_back({place});
      with_more.insert(place);
    }
  if (!with_more.empty()) all.push_back(with_more);
  for (const std::set<std::string>& some : all) {
    const TrainedThere there(row, other, some);
    if (!there.are_far_apart()) continue;
    const auto part = [](int64_t runs, int64_t of) {
      return std::to_string(runs) + " of " + std::to_string(of);
    };
    return part(there.own_there, there.own) + " runs of " + row.spec.config + " were trained on " +
           first_of({some.begin(), some.end()}) + ", of " + other.spec.config + " " +
           part(there.others_there, there.others) +
           ": devices of one name differ ('forge bench' measures on one)";
  }
  return "";
}

/// A quantity that depends on what else the machine did meanwhile.
struct MeasuredInTurn {
  const char* what;
  const char* way;  ///< how to measure it in turn
  Turns most;       ///< the worst turns in which it is tested
};
constexpr MeasuredInTurn speeds_in_turn = {
    "speeds", "'forge bench' measures in turn", Turns::one_row_first};
constexpr MeasuredInTurn memory_in_turn = {
    "memory", "'forge run --table' runs them in turn", Turns::hours_apart};

/// What is said of one row alone would say beside another which of the two is faster or needs less:
/// "" where it was trained in turn with all others of the table.
std::string why_row_not_tested(const MeasuredInTurn& measured,
                               const AblationRow& row,
                               const Ablation& ablation) {
  const std::string way = std::string(" (") + measured.way + ")";
  for (const AblationRow& other : ablation.rows) {
    if (&other == &row || other.group != row.group) continue;
    if (!other.is_comparable() || other.runs.size() < 2)
      return turns_text(measured.what, Turns::one_after_another) + ": " + other.spec.config +
             ", which the table declares, has no runs to compare" + way;
    const Turns turns = turns_of({&row, &other}, ablation.busy);
    if (turns > measured.most)
      return turns_text(measured.what, turns) +
             ": what changed on the machine between this row and " + other.spec.config +
             " is in each" + way;
  }
  return "";
}

/// The same of the devices on which it was trained.
std::string why_other_places(const AblationRow& row, const Ablation& ablation) {
  for (const AblationRow& other : ablation.rows) {
    if (other.group != row.group) continue;
    for (const std::string& why : {why_other_places(row, other), why_other_places(other, row)})
      if (!why.empty()) return why;
  }
  return "";
}

std::string why_rows_not_in_turn(const MeasuredInTurn& measured,
                                 const std::vector<const AblationRow*>& rows,
                                 const Ablation& ablation) {
  if (rows.size() == 1) return why_row_not_tested(measured, *rows.front(), ablation);
  const Turns turns = turns_of(rows, ablation.busy);
  if (turns <= measured.most) return "";
  return turns_text(measured.what, turns) +
         ": what changed on the machine between the rows is in their difference (" + measured.way +
         ")";
}

std::string why_timings_not_tested(const std::vector<const AblationRow*>& rows,
                                   const Ablation& ablation) {
  for (const AblationRow* row : rows)
    if (was_loaded(*row)) return "of " + row->spec.config + ", " + load_text(*row);
  if (const std::string why = why_places_not_tested(rows); !why.empty()) return why;
  if (rows.size() == 1)
    if (const std::string why = why_other_places(*rows.front(), ablation); !why.empty()) return why;
  return why_rows_not_in_turn(speeds_in_turn, rows, ablation);
}

/// The budget is that of the row which needs the least, and may be another with rows that are not
/// there, or with the speed of another run: who hides or repeats one chooses it. "" where all that
/// the table declares are there as they were made first.
std::string why_budget_not_tested(const std::vector<RowMetric>& metrics, const Ablation& ablation) {
  const auto is_asked = [&](const char* name) {
    return std::any_of(
        metrics.begin(), metrics.end(), [&](const RowMetric& each) { return each.metric == name; });
  };
  const bool is_of_time = is_asked(results::loss_at_equal_time_name);
  if (!is_of_time && !is_asked(results::loss_at_equal_flops_name)) return "";
  std::set<std::string> lacking;
  for (const AblationRow& row : ablation.rows) {
    // One that is larger than the table allows counts for the budget all the same. One seed of a
    // row may be what is left of it.
    const bool has_part =
        row.is_comparable() || !row.loss_at_equal_flops.empty() || !row.loss_at_equal_time.empty();
    const bool has_time = row.cost.seconds > 0 || !row.loss_at_equal_time.empty();
    if (row.runs.size() < 2 || !has_part || (is_of_time && !has_time))
      lacking.insert(row.spec.config);
  }
  for (const auto& [row, times] : ablation.hidden)
    if (!find_row(ablation, row.first, row.second)) lacking.insert(row.first);
  if (!lacking.empty())
    return "the equal budget is that of the rows shown: what " +
           join({lacking.begin(), lacking.end()}, ", ") + " needs is not known";
  if (!is_of_time || !is_timed_by_runs(results::tokens_per_second_name, ablation.table)) return "";
  std::vector<const AblationRow*> rows;
  for (const AblationRow& row : ablation.rows) rows.push_back(&row);
  std::string why = why_repetitions_not_tested(rows);
  if (why.empty()) why = why_lost_speeds_not_tested(rows);
  return why.empty() ? "" : "the equal time depends on the speed of each row: " + why;
}

}  // namespace

std::string why_not_tested(const std::vector<RowMetric>& metrics, const Ablation& ablation) {
  const TableSpec& table = ablation.table;
  const std::string why_budget = why_budget_not_tested(metrics, ablation);
  if (!why_budget.empty()) return why_budget;
  const std::string why_same = why_rows_are_repetitions(metrics, ablation);
  if (!why_same.empty()) return why_same;
  const auto is_timed = [&](const std::string& metric) { return is_timed_by_runs(metric, table); };
  const auto is_drawn = [&](const std::string& metric) { return is_drawn_anew(metric, table); };
  const auto is_of_machine = [&](const std::string& metric) {
    return is_timed(metric) || is_memory(metric);
  };
  std::string why = why_timings_not_tested(rows_with(metrics, is_timed), ablation);
  // What a process holds depends on what else the machine was given to do.
  if (why.empty())
    why = why_rows_not_in_turn(memory_in_turn, rows_with(metrics, is_memory), ablation);
  if (why.empty()) why = why_lost_speeds_not_tested(rows_with(metrics, is_of_machine));
  if (why.empty()) why = why_new_values_not_tested(metrics);
  return why.empty() ? why_repetitions_not_tested(rows_with(metrics, is_drawn)) : why;
}

std::string why_places_not_tested(const std::vector<const AblationRow*>& rows) {
  for (const AblationRow* row : rows)
    for (const AblationRow* other : rows)
      if (const std::string why = why_other_places(*row, *other); !why.empty()) return why;
  return "";
}

std::string why_lost_speeds_not_tested(const std::vector<const AblationRow*>& rows) {
  for (const AblationRow* row : rows)
    for (const store::RunSummary& run : row->runs)
      if (run.lost_windows > 0)
        return "run " + run.id +
               " was trained anew from an earlier step, after its speed there was told: which of "
               "the two counts may have been chosen ('forge bench' measures speeds)";
  return "";
}

std::string why_repetitions_not_tested(const std::vector<const AblationRow*>& rows) {
  for (const AblationRow* row : rows) {
    for (const store::RunSummary& first : row->first_runs) {
      const store::RunSummary* const shown = shown_of_seed(*row, first.seed);
      if (shown && shown->id != first.id)
        return "run " + shown->id + " repeats " + first.id +
               ": the losses are the same, speeds and curves are drawn anew, and may have been "
               "chosen ('forge bench' measures speeds)";
    }
  }
  return "";
}

}  // namespace forge::tables
