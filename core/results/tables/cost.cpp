#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/comparable_metrics.h"

namespace forge::tables {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double tokens_of(const AblationRow& row) { return static_cast<double>(row.run->tokens); }

/// Seconds for a token; NaN if the row's speed is not comparable with the baseline's.
double seconds_per_token(const AblationRow& row, const Ablation& ablation) {
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
  const std::optional<double> speed = tokens_per_second_of(row, ablation.table);
  if (!baseline || !speed || !(*speed > 0)) return unknown;
  const bool has_measured_speeds = ablation.table.tokens_per_second == SpeedSource::benchmark;
  if (!has_measured_speeds && !baseline->completed()) return unknown;
  const std::string why =
      why_measured_otherwise(row, *baseline, results::tokens_per_second_name, ablation.table);
  return why.empty() ? 1 / *speed : unknown;
}

/// When the run was done, or came here from elsewhere.
std::string known_since(const store::RunSummary& run) {
  return std::max(run.updated, run.imported);
}

/// Seconds that a token took in the run of the row that was done first; NaN if that of the row is
/// not known. Neither further seeds nor runs that go on later change it.
double seconds_of_first_run(const AblationRow& row, double of_row, const TableSpec& table) {
  if (std::isnan(of_row) || table.tokens_per_second == SpeedSource::benchmark) return of_row;
  const auto first =
      std::min_element(row.runs.begin(), row.runs.end(), [](const auto& a, const auto& b) {
        return std::make_pair(known_since(a), a.seed) < std::make_pair(known_since(b), b.seed);
      });
  const std::optional<double> speed = first->metric(results::tokens_per_second_name);
  return speed && *speed > 0 ? 1 / *speed : of_row;
}

/// The cost of the row that needs the least for all its tokens.
struct SmallestBudget {
  double amount = std::numeric_limits<double>::infinity();
  std::string row;  ///< its name; "": no cost is known
};

/// That of each group of rows: others are not compared with them. `costs` of a token in each row;
/// NaN: not known.
std::map<std::string, SmallestBudget> smallest_budgets(const Ablation& ablation,
                                                       const std::vector<double>& costs) {
  std::map<std::string, SmallestBudget> budgets;
  for (size_t i = 0; i < costs.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    SmallestBudget& budget = budgets[row.group];
    if (!row.completed() || !row.is_comparable() || std::isnan(costs[i])) continue;
    const double amount = costs[i] * tokens_of(row);
    if (amount < budget.amount) budget = {amount, row.spec.name};
  }
  return budgets;
}

/// The cost of a token in a run of a row.
using CostOfToken = std::function<double(const store::RunSummary&)>;

/// The losses of the row's runs within the budget; empty if one is not known.
std::vector<double> losses_within(const SmallestBudget& budget,
                                  const CostOfToken& cost_of_a_token,
                                  const AblationRow& row,
                                  const Evaluations& evaluations) {
  std::vector<double> losses;
  if (!row.is_comparable()) return losses;
  for (const store::RunSummary& run : row.runs) {
    const double cost = cost_of_a_token(run);
    if (std::isnan(cost)) return {};
    const double tokens = std::min(budget.amount / cost, tokens_of(row));
    losses.push_back(loss_after(tokens, evaluations(run.id)));
    if (std::isnan(losses.back())) return {};
  }
  return losses;
}

/// " with train.max_steps 100"; "" in a table whose rows no key divides.
std::string of_group(const std::string& group, const Ablation& ablation) {
  return group.empty() ? "" : " with " + ablation.table.by + " " + group;
}

std::string short_number(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", number);
  return text;
}

}  // namespace

double loss_after(double tokens, const std::vector<store::LossPoint>& evaluations) {
  const auto after = std::lower_bound(evaluations.begin(),
                                      evaluations.end(),
                                      tokens,
                                      [](const store::LossPoint& point, double wanted) {
                                        return static_cast<double>(point.tokens) < wanted;
                                      });
  if (evaluations.empty()) return unknown;
  if (after == evaluations.end()) return evaluations.back().loss;
  if (static_cast<double>(after->tokens) == tokens) return after->loss;
  if (after == evaluations.begin()) return unknown;
  const store::LossPoint& before = *(after - 1);
  const double from = std::log(static_cast<double>(before.tokens));
  const double to = std::log(static_cast<double>(after->tokens));
  const double fraction = (std::log(tokens) - from) / (to - from);
  return before.loss + fraction * (after->loss - before.loss);
}

void add_equal_budgets(Ablation& ablation,
                       const Evaluations& evaluations,
                       const std::function<double(const store::RunSummary&)>& flops_per_token) {
  std::vector<double> seconds, first_seconds, operations;
  for (const AblationRow& row : ablation.rows) {
    seconds.push_back(row.completed() ? seconds_per_token(row, ablation) : unknown);
    first_seconds.push_back(seconds_of_first_run(row, seconds.back(), ablation.table));
    operations.push_back(row.completed() ? flops_per_token(*row.run) : unknown);
  }
  const auto time = smallest_budgets(ablation, first_seconds),
             compute = smallest_budgets(ablation, operations);
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    AblationRow& row = ablation.rows[i];
    const bool measured = ablation.table.tokens_per_second == SpeedSource::benchmark;
    // Each run has the time that its own speed makes of its tokens: so the interval has the noise
    // of the speeds in it.
    const auto own_seconds = [&](const store::RunSummary& run) {
      const std::optional<double> speed = run.metric(results::tokens_per_second_name);
      return measured || std::isnan(seconds[i]) || !speed || !(*speed > 0) ? seconds[i]
                                                                           : 1 / *speed;
    };
    const auto own_operations = [&](const store::RunSummary&) { return operations[i]; };
    row.loss_at_equal_time = losses_within(time.at(row.group), own_seconds, row, evaluations);
    row.loss_at_equal_flops =
        losses_within(compute.at(row.group), own_operations, row, evaluations);
    if (!row.completed()) continue;
    row.cost.operations = operations[i] * tokens_of(row);
    row.cost.seconds = std::isnan(seconds[i]) ? 0 : first_seconds[i] * tokens_of(row);
  }
  std::vector<std::string> parts;
  for (const auto& [group, budget] : time)
    if (!budget.row.empty())
      parts.push_back(human_duration(budget.amount) + " of training, all that " + budget.row +
                      of_group(group, ablation) + " takes");
  for (const auto& [group, budget] : compute)
    if (!budget.row.empty())
      parts.push_back(short_number(budget.amount) + " FLOPs, those of " + budget.row +
                      of_group(group, ablation));
  if (parts.empty()) return;
  parts.emplace_back(
      "losses there are interpolated between evaluations, before the end of the schedule: runs "
      "made "
      "for that budget may end lower");
  ablation.setup.push_back({"Equal budgets",
                            join(parts, "; "),
                            "equal budgets interpolated, before the schedule's end"});
}

}  // namespace forge::tables
