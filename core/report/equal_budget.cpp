#include "core/report/equal_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace forge::report {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double tokens_of(const AblationRow& row) { return static_cast<double>(row.run->tokens); }

/// Seconds for a token; NaN where the row's speed says nothing beside the others'.
double seconds_per_token(const AblationRow& row, const Ablation& ablation) {
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.division);
  const std::optional<double> speed = tokens_per_second_of(row, ablation.table);
  if (!baseline || !speed || !(*speed > 0)) return unknown;
  const bool measured = ablation.table.tokens_per_second == SpeedSource::benchmark;
  if (measured ? !row.speed->otherwise.empty() : !computed_alike(row, *baseline)) return unknown;
  return 1 / *speed;
}

/// What each row pays for a token, NaN where that is not known, and the losses that come of it.
class Budget {
 public:
  Budget(const Ablation& ablation, std::vector<double> cost_of_a_token)
      : cost_of_a_token_(std::move(cost_of_a_token)) {
    for (size_t i = 0; i < cost_of_a_token_.size(); ++i) {
      const AblationRow& row = ablation.rows[i];
      if (!row.completed() || !row.is_controlled() || std::isnan(cost_of_a_token_[i])) continue;
      const double cost = cost_of_a_token_[i] * tokens_of(row);
      if (cost < smallest_) {
        smallest_ = cost;
        whose_ = row.spec.name;
      }
    }
  }

  std::vector<double> losses(size_t index,
                             const AblationRow& row,
                             const Evaluations& evaluations) const {
    std::vector<double> losses;
    if (!row.is_controlled() || std::isnan(cost_of_a_token_[index])) return losses;
    const double tokens = std::min(smallest_ / cost_of_a_token_[index], tokens_of(row));
    for (const store::RunSummary& run : row.runs)
      losses.push_back(loss_after(tokens, evaluations(run.id)));
    const bool known =
        std::none_of(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); });
    return known ? losses : std::vector<double>();
  }

  bool is_known() const { return !whose_.empty(); }
  double amount() const { return smallest_; }
  const std::string& whose() const { return whose_; }

 private:
  std::vector<double> cost_of_a_token_;
  double smallest_ = std::numeric_limits<double>::infinity();
  std::string whose_;
};

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
  const double way = (std::log(tokens) - from) / (to - from);
  return before.loss + way * (after->loss - before.loss);
}

void add_equal_budgets(Ablation& ablation,
                       const Evaluations& evaluations,
                       const std::function<double(const store::RunSummary&)>& flops_per_token) {
  std::vector<double> seconds, operations;
  for (const AblationRow& row : ablation.rows) {
    seconds.push_back(row.completed() ? seconds_per_token(row, ablation) : unknown);
    operations.push_back(row.completed() ? flops_per_token(*row.run) : unknown);
  }
  const Budget time(ablation, seconds), compute(ablation, operations);
  for (size_t i = 0; i < ablation.rows.size(); ++i) {
    AblationRow& row = ablation.rows[i];
    row.loss_at_equal_time = time.losses(i, row, evaluations);
    row.loss_at_equal_flops = compute.losses(i, row, evaluations);
  }
  if (!time.is_known() && !compute.is_known()) return;
  std::vector<std::string> parts;
  if (time.is_known())
    parts.push_back(human_duration(time.amount()) + " of training, all that " + time.whose() +
                    " takes");
  if (compute.is_known())
    parts.push_back(short_number(compute.amount()) + " FLOPs, those of " + compute.whose());
  ablation.setup.push_back({"Equal budgets", join(parts, "; "), ""});
}

}  // namespace forge::report
