#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/table_spec.h"

/// Tables whose rows are each trained, to the end of their schedules, with the same budget.
namespace forge::tables {

/// What the training of a row costs.
struct TrainingCost {
  double flops_per_token = 0;
  std::optional<double> tokens_per_second;  ///< none: not measured beside the other rows
  int64_t tokens_per_step = 0;
};

/// The steps, at least one, in which a row uses as much of the budget as `reference` does in its
/// steps; none where that takes a speed that was not measured.
std::optional<int64_t> steps_within(Budget budget,
                                    const TrainingCost& row,
                                    const TrainingCost& reference,
                                    int64_t reference_steps);

/// Whether a run of so many steps keeps a budget of `wanted` ones: exactly, but for a budget of
/// time, where two measurements of one speed differ, within 2 %.
bool keeps_budget(Budget budget, int64_t steps, int64_t wanted);

/// The config whose runs say how much the others may use.
const std::string& reference_of(const TableSpec& table);

/// Whether two numbers of parameters differ by 1 % at most: a program may count a buffer, too.
bool are_as_many(int64_t parameters, int64_t others);

/// Why it is not known how the FLOPs of two runs compare: the program of one of them reports
/// another number of parameters than the config's model has. "" if it is known, and for two such
/// runs whose programs and configs agree with each other. `other`: null is none.
std::string why_flops_not_known(const store::ConfiguredRun& run, const store::ConfiguredRun* other);

/// FLOPs of one token of the training of the run's config (core/model/cost.h).
double flops_per_token(const store::ConfiguredRun& run);

/// What the rows of a table may use, as the runs of its reference do.
class BudgetCheck {
 public:
  /// `runs` are those that the table could show, newest first; `rows` are the table's, for which
  /// `benchmarks` are measurements.
  BudgetCheck(const TableSpec& table,
              const std::vector<const store::ConfiguredRun*>& runs,
              std::vector<SpeedRow> rows,
              const std::vector<benchmark::Record>& benchmarks,
              const IsCurrent& is_current);

  /// "300 steps, equal FLOPs are 287 steps"; "" for a run that keeps the budget, or where no run
  /// says what it is.
  std::string violation(const store::ConfiguredRun& run) const;

 private:
  /// The measurements that a run keeps the budget by: of its row, trained as it was, and of the
  /// reference.
  struct Speeds {
    std::optional<MeasuredSpeed> own, reference;
  };
  const Speeds& speeds_for(const store::ConfiguredRun& run) const;

  const TableSpec& table_;
  const std::vector<SpeedRow> rows_;
  const std::vector<benchmark::Record>& benchmarks_;
  std::optional<TrainingCost> reference_;  ///< but for its speed
  int64_t reference_steps_ = 0;
  std::optional<store::ConfiguredRun> reference_run_;
  /// By the run's config and how it was trained, which many runs share.
  mutable std::map<std::pair<std::string, SpeedSettings>, Speeds> known_speeds_;
};

/// The budget and how well the rows keep it, for the table's setup.
SetupEntry describe_budget(const Ablation& ablation);

}  // namespace forge::tables
