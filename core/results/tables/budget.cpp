#include "core/results/tables/budget.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/metrics.h"

namespace forge::tables {
namespace {

/// The measurements of `forge bench` repeat within about a per cent.
constexpr double time_tolerance = 0.02;

/// "equal FLOPs".
std::string budget_text(Budget budget) {
  switch (budget) {
    case Budget::tokens: return "equal tokens";
    case Budget::flops: return "equal FLOPs";
    default: return "equal training time";
  }
}

/// Training time by the run's own speed, without evaluations and pauses.
std::optional<double> training_seconds(const store::RunSummary& run) {
  const std::optional<double> speed = run.metric(results::tokens_per_second_name);
  if (!speed || !(*speed > 0)) return std::nullopt;
  return static_cast<double>(run.tokens) / *speed;
}

std::optional<double> mean_seconds(const AblationRow& row) {
  double sum = 0;
  for (const store::RunSummary& run : row.runs) {
    const std::optional<double> seconds = training_seconds(run);
    if (!seconds) return std::nullopt;
    sum += *seconds;
  }
  if (row.runs.empty()) return std::nullopt;
  return sum / static_cast<double>(row.runs.size());
}

}  // namespace

std::optional<int64_t> steps_within(Budget budget,
                                    const TrainingCost& row,
                                    const TrainingCost& reference,
                                    int64_t reference_steps) {
  double tokens = static_cast<double>(reference_steps * reference.tokens_per_step);
  if (budget == Budget::flops) tokens *= reference.flops_per_token / row.flops_per_token;
  if (budget == Budget::time) {
    if (!row.tokens_per_second || !reference.tokens_per_second) return std::nullopt;
    tokens *= *row.tokens_per_second / *reference.tokens_per_second;
  }
  const double steps = tokens / static_cast<double>(row.tokens_per_step);
  return std::max<int64_t>(1, std::llround(steps));
}

bool keeps_budget(Budget budget, int64_t steps, int64_t wanted) {
  if (budget != Budget::time) return steps == wanted;
  const auto allowed = std::max(1.0, time_tolerance * static_cast<double>(wanted));
  return std::abs(static_cast<double>(steps - wanted)) <= allowed;
}

const std::string& reference_of(const TableSpec& table) {
  return table.budget && !table.budget->of.empty() ? table.budget->of : table.baseline;
}

double flops_per_token(const store::ConfiguredRun& run) {
  const config::Experiment experiment = config::experiment_from_json(run.config);
  return static_cast<double>(
      model::flops_per_token(experiment.model, experiment.train.seq_len).total());
}

BudgetCheck::BudgetCheck(const TableSpec& table,
                         const std::vector<const store::ConfiguredRun*>& runs,
                         std::vector<std::optional<MeasuredSpeed>> speeds,
                         const IsCurrent& is_current)
    : table_(table), speeds_(std::move(speeds)) {
  std::vector<const store::ConfiguredRun*> own;
  for (const store::ConfiguredRun* run : runs) {
    if (run->summary.config == reference_of(table)) own.push_back(run);
  }
  std::vector<ExcludedRuns> ignored;
  const Sample sample = sample_of(own, ignored, "", is_current);
  if (!sample.run) return;
  const auto found = std::find_if(
      own.begin(), own.end(), [&](const auto* run) { return run->summary.id == sample.run->id; });
  reference_ = cost_of(**found);
  reference_steps_ = sample.run->max_steps;
}

const MeasuredSpeed* BudgetCheck::speed_of(const store::ConfiguredRun& run) const {
  for (size_t i = 0; i < table_.rows.size() && i < speeds_.size(); ++i)
    if (table_.rows[i].config == run.summary.config && speeds_[i]) return &*speeds_[i];
  return nullptr;
}

std::string BudgetCheck::why_not_its_speed(const store::ConfiguredRun& run,
                                           const MeasuredSpeed& speed) const {
  if (!speed.not_comparable_because.empty()) return speed.not_comparable_because;
  return why_of_other_training(speed.record, speed_settings_of(run), "the runs", table_);
}

TrainingCost BudgetCheck::cost_of(const store::ConfiguredRun& run) const {
  TrainingCost cost{flops_per_token(run), std::nullopt, run.summary.tokens_per_step};
  if (table_.budget->equal != Budget::time) return cost;
  const MeasuredSpeed* const speed = speed_of(run);
  if (speed && why_not_its_speed(run, *speed).empty())
    cost.tokens_per_second = speed->record.tokens_per_second;
  return cost;
}

std::string BudgetCheck::violation(const store::ConfiguredRun& run) const {
  if (!reference_) return "";
  const Budget budget = table_.budget->equal;
  const auto wanted = steps_within(budget, cost_of(run), *reference_, reference_steps_);
  if (!wanted) {
    const MeasuredSpeed* const speed = speed_of(run);
    const std::string why = speed ? why_not_its_speed(run, *speed) : "";
    return "its speed is not known" + (why.empty() ? "" : ", " + why) + ": '" +
           bench_command(table_) + "' measures all rows in one call";
  }
  if (keeps_budget(budget, run.summary.max_steps, *wanted)) return "";
  return with_thousands(run.summary.max_steps) + " steps, " + budget_text(budget) + " are " +
         with_thousands(*wanted) + " steps";
}

SetupEntry describe_budget(const Ablation& ablation) {
  const TableSpec& table = ablation.table;
  const AblationRow* const reference = find_row(ablation, reference_of(table));
  const std::string name = reference ? reference->spec.name : reference_of(table);
  const Budget budget = table.budget->equal;
  std::string text = budget_text(budget) + ": each row is trained, to the end of its schedule, " +
                     "with those of " + name;
  if (budget == Budget::time)
    text = budget_text(budget) + ": each row is trained, to the end of its schedule, as long as " +
           name + ", by the speeds of 'forge bench'";
  const std::optional<double> theirs = reference ? mean_seconds(*reference) : std::nullopt;
  double largest = 0;
  for (const AblationRow& row : ablation.rows) {
    const std::optional<double> own = row.is_comparable() ? mean_seconds(row) : std::nullopt;
    if (own && theirs) largest = std::max(largest, std::abs(*own / *theirs - 1));
  }
  if (budget == Budget::time && theirs)
    text += "; by their own speeds the runs took it within " + results::percent_text(largest);
  std::string briefly = budget_text(budget) + ", each row to the end of its schedule";
  if (budget == Budget::time && largest > time_tolerance)
    briefly += ", by speeds of 'forge bench' that the runs kept within " +
               results::percent_text(largest) + " only";
  return {"Budget", text, briefly};
}

}  // namespace forge::tables
