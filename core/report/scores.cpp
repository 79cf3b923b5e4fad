#include "core/report/scores.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace forge::report {
namespace {

constexpr double normal_quantile_975 = 1.959963984540054;

}  // namespace

bool is_share(const std::string& name) {
  const std::string whole = name.substr(0, name.find('.'));
  return ends_with(whole, "accuracy") || ends_with(whole, "validity");
}

const std::vector<std::string>& run_figures() {
  static const std::vector<std::string> names = {eval_loss_name,
                                                 train_loss_name,
                                                 selection_loss_name,
                                                 tokens_per_second_name,
                                                 peak_memory_name,
                                                 parameters_name,
                                                 wall_seconds_name};
  return names;
}

bool more_is_better(const std::string& name) {
  return name == tokens_per_second_name || is_share(name);
}

bool is_of_the_device(const std::string& name) {
  return name == tokens_per_second_name || name == wall_seconds_name || name == peak_memory_name;
}

bool is_a_time(const std::string& name) {
  return name == tokens_per_second_name || name == wall_seconds_name ||
         name == loss_at_equal_time_name;
}

std::optional<double> figure_of(const store::RunSummary& run, const std::string& name) {
  if (name == eval_loss_name) return run.eval_loss;
  if (name == train_loss_name) return run.train_loss;
  if (name == selection_loss_name) return run.selection_loss;
  if (name == tokens_per_second_name) return run.tokens_per_second;
  if (name == parameters_name) return static_cast<double>(run.parameters);
  if (name == wall_seconds_name) return run.wall_seconds;
  if (name == peak_memory_name) {
    if (!run.peak_memory_bytes) return std::nullopt;
    return static_cast<double>(*run.peak_memory_bytes);
  }
  const auto found = run.scores.find(name);
  if (found == run.scores.end()) return std::nullopt;
  return found->second.value;
}

const Scores::value_type* headline(const Scores& scores) {
  const auto is_whole = [](const auto& score) {
    return score.first.find('.') == std::string::npos;
  };
  const auto found = std::find_if(scores.begin(), scores.end(), is_whole);
  return found == scores.end() ? nullptr : &*found;
}

Interval wilson_interval(double share, int64_t count) {
  if (count <= 0) return {};
  const double n = static_cast<double>(count);
  share = std::clamp(share, 0.0, 1.0);
  const double z2 = normal_quantile_975 * normal_quantile_975;
  const double centre = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half =
      normal_quantile_975 / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace forge::report
