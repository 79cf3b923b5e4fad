#include "core/results/tables/other_budgets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/row_sample.h"
#include "core/results/tables/run_times.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;

/// Whether the run can stand beside the other in the table's rows. Each command has a program of
/// its own.
bool meets_conditions_of(const ConfiguredRun& shown,
                         const ConfiguredRun& run,
                         const TableSpec& table) {
  const auto without_program = [&](const ConfiguredRun& of) {
    std::vector<Condition> conditions = conditions_of(of, table);
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(), is_program),
                     conditions.end());
    return conditions;
  };
  return group_of(run, table) == group_of(shown, table) &&
         violations(without_program(run), without_program(shown)).empty();
}

/// What the table varies itself is no other way to run a row.
std::string key_of_set(const ConfiguredRun& run, const TableSpec& table) {
  return run::identity_hash(identity_of_set(run, table));
}

RunCost cost_of_run(const ConfiguredRun& run) {
  RunCost cost;
  const auto tokens = static_cast<double>(run.summary.tokens);
  cost.operations = flops_per_token(run) * tokens;
  const std::optional<double> speed = run.summary.metric(results::tokens_per_second_name);
  if (speed && *speed > 0) cost.seconds = tokens / *speed;
  cost.made = begun_at(run.summary);
  return cost;
}

/// Which of the costs is the budget.
using Amount = double RunCost::*;

/// Whether a row run so would set another budget than as it is shown. A time is never the same
/// twice: within 2 % it is.
bool is_other_budget(const RunCost& other, const RunCost& shown, Amount amount) {
  const bool are_known = other.*amount > 0 && shown.*amount > 0;
  const bool is_time = amount == &RunCost::seconds && are_known;
  const double of_other = is_time ? other.seconds : other.operations;
  const double of_shown = is_time ? shown.seconds : shown.operations;
  return std::fabs(of_other - of_shown) > (is_time ? 0.02 : 1e-9) * of_shown;
}

/// When the budget was made at which the table compares the group: with the row that sets it.
std::string budget_made(const std::string& group, const Ablation& ablation, Amount amount) {
  const AblationRow* least = nullptr;
  for (const AblationRow& row : ablation.rows)
    if (row.group == group && row.completed() && row.is_comparable() && row.cost.*amount > 0 &&
        (!least || row.cost.*amount < least->cost.*amount))
      least = &row;
  if (!least) return "";
  return least->runs.size() > 1 ? least->sets.shown.second_run : least->cost.made;
}

/// The other budgets at which the rows could have been compared before they were, at that time.
size_t other_budgets(const std::vector<const AblationRow*>& rows,
                     Amount amount,
                     const Ablation& ablation) {
  std::string of_shown = budget_made(rows.front()->group, ablation, amount);
  for (const AblationRow* row : rows) of_shown = std::max(of_shown, row->sets.shown.second_run);
  size_t count = 0;
  for (const AblationRow& setting : ablation.rows) {
    if (setting.group != rows.front()->group) continue;
    // Beyond what another row needs it is not the least, and no budget.
    double least = std::numeric_limits<double>::infinity();
    bool is_compared = false;
    for (const AblationRow* row : rows) {
      is_compared = is_compared || row == &setting;
      if (row != &setting && row->cost.*amount > 0) least = std::min(least, row->cost.*amount);
    }
    if (is_compared && rows.size() < 3) continue;  // what else it was run with are sets of its own
    std::set<double> found;
    for (const RunCost& other : setting.other_costs)
      if (other.made <= of_shown && is_other_budget(other, setting.cost, amount) &&
          !(other.*amount >= least))
        found.insert(other.*amount > 0 ? other.*amount : other.operations);
    count += found.size();
  }
  return count;
}

/// The calls of `forge bench` whose speeds could have said how far the rows' curves are read,
/// before those of the newest one did: each that was the newest while these runs were known.
size_t earlier_calls(const std::vector<const AblationRow*>& rows, const Ablation& ablation) {
  if (ablation.table.tokens_per_second != SpeedSource::benchmark) return 0;
  std::string known;
  for (const AblationRow* row : rows) known = std::max(known, row->sets.shown.second_run);
  std::set<std::string> calls;
  for (const AblationRow& row : ablation.rows) {
    if (!row.speed || row.speed->record.call.created <= known) continue;
    for (const std::string& created : row.speed->earlier_calls)
      calls.insert(created > known ? created : "the last one before");
  }
  return calls.size();
}

/// Whether the table shows the metric, or a claim is about it.
bool is_asked(const char* metric, const TableSpec& table) {
  return std::any_of(table.columns.begin(),
                     table.columns.end(),
                     [&](const ColumnSpec& column) { return column.metric == metric; }) ||
         std::any_of(table.claims.begin(), table.claims.end(), [&](const ClaimSpec& claim) {
           const std::vector<ClaimedMetric> metrics = metrics_of(claim, table);
           return std::any_of(metrics.begin(), metrics.end(), [&](const ClaimedMetric& claimed) {
             return claimed.metric == metric;
           });
         });
}

}  // namespace

void count_other_budgets(const MadeRuns& made, Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    if (!row.completed()) continue;
    const MadeRuns::Runs of_config = made.of_config(row.spec.config);
    const auto shown = std::find_if(of_config.begin(), of_config.end(), [&](const auto* run) {
      return run->summary.id == row.run->id;
    });
    if (shown == of_config.end()) continue;
    std::string newest;
    row.cost.made = made_at(*row.run);
    for (const store::RunSummary& run : row.runs) newest = std::max(newest, made_at(run));
    for (const store::RunSummary& run : row.first_runs)
      row.cost.made = std::min(row.cost.made, made_at(run));
    const std::string own = key_of_set(**shown, ablation.table);
    std::map<std::string, const ConfiguredRun*> first_of_set;
    for (const ConfiguredRun* run : made.behind(of_config, newest)) {
      if (!is_completed(run)) continue;
      const std::string key = key_of_set(*run, ablation.table);
      if (key == own || !meets_conditions_of(**shown, *run, ablation.table)) continue;
      const auto [found, is_new] = first_of_set.try_emplace(key, run);
      if (!is_new && made_at(run->summary) < made_at(found->second->summary)) found->second = run;
    }
    for (const auto& [key, run] : first_of_set) row.other_costs.push_back(cost_of_run(*run));
  }
}

SetPlace place_at_budget(const std::vector<const AblationRow*>& rows,
                         const std::vector<std::string>& metrics,
                         const Ablation& ablation) {
  SetPlace place = place_of(rows);
  const auto has = [&](const char* metric) {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  };
  if (has(results::loss_at_equal_flops_name))
    place.number *= 1 + other_budgets(rows, &RunCost::operations, ablation);
  if (has(results::loss_at_equal_time_name))
    place.number *=
        1 + other_budgets(rows, &RunCost::seconds, ablation) + earlier_calls(rows, ablation);
  return place;
}

SetupEntry describe_other_budgets(const Ablation& ablation) {
  size_t most = 0, most_calls = 0;
  std::set<std::string> names;
  for (const AblationRow& row : ablation.rows) {
    const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
    if (!baseline || baseline == &row || row.runs.size() < 2 || baseline->runs.size() < 2) continue;
    if (is_asked(results::loss_at_equal_flops_name, ablation.table))
      most = std::max(most, other_budgets({&row, baseline}, &RunCost::operations, ablation));
    if (!is_asked(results::loss_at_equal_time_name, ablation.table)) continue;
    most = std::max(most, other_budgets({&row, baseline}, &RunCost::seconds, ablation));
    most_calls = std::max(most_calls, earlier_calls({&row, baseline}, ablation));
  }
  if (most_calls > 0) {
    const std::string calls = counted(most_calls, "earlier call") + " of forge bench";
    return {"Other budgets",
            calls +
                " measured the speeds that say how far the curves are read, when the runs were "
                "known: each of these counts as a look at equal time, and so does each other "
                "budget (" +
                std::to_string(most) + ")",
            calls + " counted" + (most > 0 ? ", " + counted(most, "earlier equal budget") : "")};
  }
  if (most == 0) return {};
  for (const AblationRow& row : ablation.rows)
    if (!row.other_costs.empty()) names.insert(row.spec.name);
  const std::string of_rows = " of " + join({names.begin(), names.end()}, ", ");
  return {"Other budgets",
          "the row that needs the least sets the equal budgets, and runs" + of_rows +
              " that were made before set up to " + std::to_string(most) +
              " others: each of these counts as a look at the rows compared there",
          counted(most, "earlier equal budget") + " counted"};
}

}  // namespace forge::tables
