#include "core/results/tables/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace forge::tables {
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
                                                 validation_loss_name,
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
  if (name == validation_loss_name) return run.validation_loss;
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

namespace {

std::string decimals(double number, int count) {
  char text[400];  // of DBL_MAX with room for the decimals
  std::snprintf(text, sizeof text, "%.*f", count, number);
  return text;
}

}  // namespace

std::string loss_text(double loss) {
  return std::isfinite(loss) ? decimals(loss, 4) : shortest(loss);
}

std::string fixed_text(double number, int count) {
  if (!std::isfinite(number)) return shortest(number);
  std::string text = decimals(std::abs(number), count);
  const bool is_zero = text.find_first_not_of("0.") == std::string::npos;
  return number < 0 && !is_zero ? "\u2212" + text : text;
}

std::string score_text(double value, bool percent) {
  if (!std::isfinite(value)) return shortest(value);
  return percent ? decimals(100 * value, 1) + " %" : decimals(value, 4);
}

std::string throughput_text(double tokens_per_second) {
  if (!std::isfinite(tokens_per_second)) return shortest(tokens_per_second);
  // The limits are where rounding would give a digit more.
  if (tokens_per_second < 9999.5) return with_thousands(std::llround(tokens_per_second));
  if (tokens_per_second < 99950) return decimals(tokens_per_second / 1e3, 1) + "K";
  if (tokens_per_second < 999500) return decimals(tokens_per_second / 1e3, 0) + "K";
  return decimals(tokens_per_second / 1e6, 2) + "M";
}

std::string memory_text(double bytes) { return human_bytes(bytes); }

std::string figure_text(double value, const std::string& figure) {
  if (figure == tokens_per_second_name) return throughput_text(value);
  if (figure == peak_memory_name) return memory_text(value);
  if (figure == parameters_name) return with_thousands(std::llround(value));
  if (figure == wall_seconds_name) return human_duration(value);
  return score_text(value, is_share(figure));
}

std::string chance_text(double p) {
  if (p < 0.0001) return "p < 0.0001";
  return "p " + decimals(p, p < 0.00095 ? 4 : p < 0.0995 ? 3 : 2);
}

std::string percent_text(double fraction) {
  return std::isfinite(fraction) ? decimals(100 * fraction, 1) + " %" : shortest(fraction);
}

std::string change_text(double change) {
  if (!std::isfinite(change)) return shortest(change);
  const double tenths = std::round(change * 1000);
  const char* sign = tenths < 0 ? "\u2212" : "+";
  return sign + decimals(std::abs(tenths) / 10, 1) + " %";
}

}  // namespace forge::tables
