#include "core/results/tables/budget.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/model/parameters.h"
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

/// But for the speed.
TrainingCost cost_of(const store::ConfiguredRun& run) {
  return {flops_per_token(run), std::nullopt, run.summary.tokens_per_step};
}

/// None where the measurement says nothing beside others.
std::optional<double> comparable_speed(const std::optional<MeasuredSpeed>& speed) {
  if (!speed || !speed->not_comparable_because.empty()) return std::nullopt;
  return speed->record.tokens_per_second;
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

bool are_as_many(int64_t parameters, int64_t others) {
  constexpr double slack = 0.01;
  return std::abs(static_cast<double>(parameters - others)) <= slack * static_cast<double>(others);
}

std::string why_flops_not_known(const store::ConfiguredRun& run,
                                const store::ConfiguredRun* other) {
  const auto counted_of = [](const store::ConfiguredRun& each) {
    return model::parameter_count(config::experiment_from_json(each.config).model);
  };
  const auto is_known = [&](const store::ConfiguredRun& each) {
    const int64_t reported = each.summary.parameters;
    return each.summary.program.empty() || reported == 0 || are_as_many(reported, counted_of(each));
  };
  const bool is_own_known = is_known(run);
  if (is_own_known && (!other || is_known(*other))) return "";
  if (other && run.summary.parameters == other->summary.parameters &&
      counted_of(run) == counted_of(*other))
    return "";
  const store::ConfiguredRun& unknown = is_own_known ? *other : run;
  return (is_own_known ? "the FLOPs of " + unknown.summary.config : std::string("its FLOPs")) +
         " are not known: its program reports " + with_thousands(unknown.summary.parameters) +
         " parameters, and the config's model has " + with_thousands(counted_of(unknown));
}

double flops_per_token(const store::ConfiguredRun& run) {
  const config::Experiment experiment = config::experiment_from_json(run.config);
  return static_cast<double>(
      model::flops_per_token(experiment.model, experiment.train.seq_len).total());
}

BudgetCheck::BudgetCheck(const TableSpec& table,
                         const std::vector<const store::ConfiguredRun*>& runs,
                         std::vector<SpeedRow> rows,
                         const std::vector<benchmark::Record>& benchmarks,
                         const IsCurrent& is_current)
    : table_(table), rows_(std::move(rows)), benchmarks_(benchmarks) {
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
  reference_run_ = **found;
}

const BudgetCheck::Speeds& BudgetCheck::speeds_for(const store::ConfiguredRun& run) const {
  const std::string& config = run.summary.config;
  const SpeedSettings own = speed_settings_of(run);
  const auto [known, is_new] = known_speeds_.try_emplace({config, own});
  if (!is_new) return known->second;
  std::vector<SpeedRow> rows = rows_;
  for (SpeedRow& row : rows)
    if (row.config == config)
      row.why_not_its_own = [&](const benchmark::Record& record) {
        return why_of_other_training(record, own, "the runs", table_);
      };
  const std::vector<std::optional<MeasuredSpeed>> all = choose_speeds(table_, rows, benchmarks_);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].config == config) known->second.own = all[i];
    if (rows[i].config == reference_of(table_)) known->second.reference = all[i];
  }
  return known->second;
}

std::string BudgetCheck::violation(const store::ConfiguredRun& run) const {
  // Else who hides it lets each row use what it likes.
  if (!reference_)
    return run.summary.config == reference_of(table_)
               ? ""
               : "no run of " + reference_of(table_) + " says how much a row may use";
  const Budget budget = table_.budget->equal;
  TrainingCost own = cost_of(run), theirs = *reference_;
  if (budget == Budget::time) {
    const Speeds& speeds = speeds_for(run);
    own.tokens_per_second = comparable_speed(speeds.own);
    theirs.tokens_per_second = comparable_speed(speeds.reference);
    const bool is_own = !own.tokens_per_second;
    const auto& unknown = is_own ? speeds.own : speeds.reference;
    if (!own.tokens_per_second || !theirs.tokens_per_second)
      return (is_own ? "its speed" : "the speed of " + reference_of(table_)) + " is not known" +
             (unknown ? ", " + unknown->not_comparable_because : "") + ": '" +
             bench_command(table_) + "' measures all rows in one call";
  }
  if (budget == Budget::flops) {
    const std::string why = why_flops_not_known(run, &*reference_run_);
    if (!why.empty()) return why;
  }
  const int64_t wanted = *steps_within(budget, own, theirs, reference_steps_);
  if (keeps_budget(budget, run.summary.max_steps, wanted)) return "";
  return with_thousands(run.summary.max_steps) + " steps, " + budget_text(budget) + " are " +
         with_thousands(wanted) + " steps";
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
