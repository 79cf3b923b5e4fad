#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/comparable_metrics.h"
#include "core/run/host.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using benchmark::Record;

/// The records of one call, by config.
struct CallRecords {
  std::string created;
  std::map<std::string, const Record*> of_config;

  using Score = std::tuple<size_t, bool, std::string>;
  Score score(const TableSpec& table) const {
    return {of_config.size(), of_config.count(table.baseline) > 0, created};
  }
};

std::map<std::string, CallRecords> calls_of(const TableSpec& table,
                                            const std::vector<Record>& records) {
  std::set<std::string> configs;
  for (const RowSpec& row : table.rows) configs.insert(row.config);
  std::map<std::string, CallRecords> calls;
  for (const Record& record : records) {
    if (record.kind != benchmark::Kind::training || configs.count(record.config) == 0) continue;
    CallRecords& call = calls[record.call.id];
    call.created = record.call.created;
    call.of_config.emplace(record.config, &record);
  }
  return calls;
}

const Record* newest_of(const std::string& config,
                        const std::map<std::string, CallRecords>& calls) {
  const Record* newest = nullptr;
  for (const auto& [id, call] : calls) {
    const auto found = call.of_config.find(config);
    if (found == call.of_config.end()) continue;
    if (!newest || found->second->call.created > newest->call.created) newest = found->second;
  }
  return newest;
}

std::string bench_device_text(const Record& record) {
  return run::device_text(record.device.type, record.device.name, record.device.threads);
}

/// Why a measurement is not comparable with the reference; "" if it is.
std::string why_not_comparable(const Record& record, const Record& reference) {
  std::vector<std::string> parts;
  if (record.call.id != reference.call.id)
    parts.push_back("measured in another call, on " + record.call.created.substr(0, 10));
  if (record.device.backend != reference.device.backend)
    parts.push_back("of backend " + record.device.backend);
  if (record.processes != reference.processes)
    parts.push_back("by " + std::to_string(record.processes) +
                    (record.processes == 1 ? " process" : " processes"));
  if (bench_device_text(record) != bench_device_text(reference))
    parts.push_back("on " + bench_device_text(record));
  const std::map<std::string, nlohmann::json> others = run::dotted_leaves(reference.train);
  for (const auto& [key, value] : run::dotted_leaves(record.train)) {
    const auto other = others.find(key);
    if (other != others.end() && other->second != value)
      parts.push_back("train." + key + " " + json_text(value) + " where others have " +
                      json_text(other->second));
  }
  return join(parts, ", ");
}

}  // namespace

std::vector<std::optional<MeasuredSpeed>> choose_speeds(const TableSpec& table,
                                                        const std::vector<Record>& records) {
  const std::map<std::string, CallRecords> calls = calls_of(table, records);
  std::vector<std::optional<MeasuredSpeed>> speeds(table.rows.size());
  const auto best = std::max_element(calls.begin(), calls.end(), [&](const auto& a, const auto& b) {
    return a.second.score(table) < b.second.score(table);
  });
  if (best == calls.end()) return speeds;
  const auto& chosen = best->second.of_config;
  const auto of_baseline = chosen.find(table.baseline);
  const Record& reference =
      of_baseline != chosen.end() ? *of_baseline->second : *chosen.begin()->second;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& config = table.rows[i].config;
    const auto found = chosen.find(config);
    const Record* record = found != chosen.end() ? found->second : newest_of(config, calls);
    if (record) speeds[i] = {*record, why_not_comparable(*record, reference)};
  }
  return speeds;
}

std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds) {
  const Record* any = nullptr;
  double spread = 0;
  for (const std::optional<MeasuredSpeed>& speed : speeds) {
    if (!speed || !speed->not_comparable_because.empty()) continue;
    if (!any) any = &speed->record;
    spread = std::max(spread, speed->record.spread);
  }
  if (!any) return "";
  const std::string by =
      any->processes > 1 ? ", by " + std::to_string(any->processes) + " processes" : "";
  return "forge bench on " + any->call.created.substr(0, 10) + ", " + bench_device_text(*any) + by +
         ", " + json_text(any->train.value("batch_size", nlohmann::json(0))) + " \u00d7 " +
         json_text(any->train.value("seq_len", nlohmann::json(0))) + " tokens, " + any->precision +
         ", median of " + std::to_string(any->windows.size()) +
         " windows, spread within one process at most " + results::percent_text(spread);
}

std::string bench_command(const TableSpec& table) {
  std::vector<std::string> configs;
  for (const RowSpec& row : table.rows) configs.push_back(row.config);
  return "forge bench " + shell_quoted(configs) + table.project_option;
}

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

/// The cost of the row that needs the least for all its tokens.
struct SmallestBudget {
  double amount = std::numeric_limits<double>::infinity();
  std::string row;  ///< its name; "": no cost is known
};

/// `costs` of a token in each row; NaN: not known.
SmallestBudget smallest_budget(const Ablation& ablation, const std::vector<double>& costs) {
  SmallestBudget budget;
  for (size_t i = 0; i < costs.size(); ++i) {
    const AblationRow& row = ablation.rows[i];
    if (!row.completed() || !row.is_comparable() || std::isnan(costs[i])) continue;
    const double amount = costs[i] * tokens_of(row);
    if (amount < budget.amount) budget = {amount, row.spec.name};
  }
  return budget;
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
  std::vector<double> seconds, operations;
  for (const AblationRow& row : ablation.rows) {
    seconds.push_back(row.completed() ? seconds_per_token(row, ablation) : unknown);
    operations.push_back(row.completed() ? flops_per_token(*row.run) : unknown);
  }
  const SmallestBudget time = smallest_budget(ablation, seconds),
                       compute = smallest_budget(ablation, operations);
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
    row.loss_at_equal_time = losses_within(time, own_seconds, row, evaluations);
    row.loss_at_equal_flops = losses_within(compute, own_operations, row, evaluations);
  }
  std::vector<std::string> parts;
  if (!time.row.empty())
    parts.push_back(human_duration(time.amount) + " of training, all that " + time.row + " takes");
  if (!compute.row.empty())
    parts.push_back(short_number(compute.amount) + " FLOPs, those of " + compute.row);
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
