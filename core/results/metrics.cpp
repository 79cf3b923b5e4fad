#include "core/results/metrics.h"

#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace forge::results {
namespace {

constexpr auto lower = Direction::lower_is_better;
constexpr auto higher = Direction::higher_is_better;

Metric held_out_loss(const char* name, const char* title, Source source = Source::run) {
  Metric loss{name, title, Unit::nats_per_token, lower, source};
  loss.is_held_out_loss = true;
  return loss;
}

/// A score of a task (docs/TASKS.md).
Metric score(const char* name, const char* title, Unit unit, Direction better) {
  return {name, title, unit, better, Source::task};
}

std::vector<Metric> all_metrics() {
  Metric speed{tokens_per_second_name, "Tokens/s", Unit::tokens_per_second, higher};
  speed.depends_on_device = speed.is_timing = speed.is_cost = true;
  Metric time{wall_seconds_name, "Wall time", Unit::seconds};
  time.depends_on_device = time.is_timing = true;
  Metric memory{peak_memory_name, "Peak memory", Unit::bytes};
  memory.depends_on_device = memory.is_cost = true;
  Metric resident{peak_resident_name, "Peak resident memory", Unit::bytes};
  resident.depends_on_device = true;
  Metric parameters{parameters_name, "Parameters", Unit::count, lower, Source::model};
  parameters.is_cost = true;
  Metric at_equal_time =
      held_out_loss(loss_at_equal_time_name, "Eval loss at equal time", Source::table);
  at_equal_time.is_timing = true;
  return {
      held_out_loss(eval_loss_name, "Eval loss"),
      held_out_loss(loss_above_floor_name, "Eval loss above floor", Source::derived),
      {train_loss_name, "Train loss", Unit::nats_per_token},
      held_out_loss(validation_loss_name, "Validation loss"),
      speed,
      time,
      memory,
      resident,
      parameters,
      {state_per_token_name, "State for each token", Unit::count, lower, Source::model},
      {fixed_state_name, "State of fixed size", Unit::count, lower, Source::model},
      {"learning_rate", "Learning rate", Unit::number, lower, Source::window},
      {"gradient_norm", "Gradient norm", Unit::number, lower, Source::window},
      at_equal_time,
      held_out_loss(loss_at_equal_flops_name, "Eval loss at equal FLOPs", Source::table),
      score("token_accuracy", "Token accuracy", Unit::fraction, higher),
      score("answer_accuracy", "Answer accuracy", Unit::fraction, higher),
      score("sequence_accuracy", "Sequence accuracy", Unit::fraction, higher),
      score("value_accuracy", "Value accuracy", Unit::fraction, higher),
      score("sentence_validity", "Sentence validity", Unit::fraction, higher),
      score("kl_divergence", "KL divergence", Unit::nats_per_token, lower),
      score("name_loss", "Name loss", Unit::nats_per_token, lower),
      score("value_loss", "Value loss", Unit::nats_per_token, lower),
      score("bits_per_parameter", "Bits per parameter", Unit::number, higher),
  };
}

/// From here on a number is printed with an exponent: a double has no more digits than that.
constexpr double too_long = 1e15;

std::string decimals(double number, int count) {
  char digits[48];
  std::snprintf(
      digits, sizeof digits, std::abs(number) < too_long ? "%.*f" : "%.*e", count, number);
  return digits;
}

}  // namespace

bool Metric::is_eval_loss() const {
  return name == eval_loss_name || name == loss_above_floor_name ||
         name == loss_at_equal_time_name || name == loss_at_equal_flops_name;
}

bool Metric::is_tested() const { return name != validation_loss_name; }

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> all = all_metrics();
  return all;
}

const Metric* find_metric(const std::string& name) {
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

Metric metric_named(const std::string& name) {
  if (const Metric* const registered = find_metric(name)) return *registered;
  const std::string whole = name.substr(0, name.find('.'));
  const Metric* const of_whole = find_metric(whole);
  const bool is_fraction = ends_with(whole, "accuracy") || ends_with(whole, "validity");
  Metric metric = of_whole      ? *of_whole
                  : is_fraction ? score("", "", Unit::fraction, higher)
                                : score("", "", Unit::number, lower);
  metric.name = metric.title = name;
  metric.source = Source::task;
  return metric;
}

const std::vector<std::string>& run_metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const Metric& metric : metrics()) {
      const Source source = metric.source;
      if (source == Source::run || source == Source::model || source == Source::derived)
        found.push_back(metric.name);
    }
    return found;
  }();
  return names;
}

std::vector<std::string> run_and_table_metric_names() {
  std::vector<std::string> names = run_metric_names();
  for (const Metric& metric : metrics()) {
    if (metric.source == Source::table) names.push_back(metric.name);
  }
  return names;
}

std::string text(double value, const Metric& metric) {
  if (!std::isfinite(value)) return shortest(value);
  switch (metric.unit) {
    case Unit::fraction: return percent_text(value);
    case Unit::tokens_per_second: return throughput_text(value);
    case Unit::bytes:
      return std::abs(value) < too_long ? human_bytes(value) : decimals(value, 1) + " B";
    case Unit::seconds:
      return std::abs(value) < too_long ? human_duration(value) : decimals(value, 1) + " s";
    case Unit::count:
      return std::abs(value) < too_long ? with_thousands(std::llround(value)) : decimals(value, 1);
    case Unit::nats_per_token:
    case Unit::number: break;
  }
  return loss_text(value);
}

int decimals_beside(const std::vector<double>& limits,
                    const std::vector<double>& values,
                    int least) {
  constexpr int most = 12;
  const auto look_alike = [&](int decimals) {
    return std::any_of(limits.begin(), limits.end(), [&](double limit) {
      return std::any_of(values.begin(), values.end(), [&](double value) {
        return value != limit && fixed_text(value, decimals) == fixed_text(limit, decimals);
      });
    });
  };
  while (least < most && look_alike(least)) ++least;
  return least;
}

std::function<std::string(double)> text_beside(double limit,
                                               const std::vector<double>& values,
                                               const Metric& metric) {
  const auto looks_like_it = [&](double value) {
    return value != limit && text(value, metric) == text(limit, metric);
  };
  if (std::none_of(values.begin(), values.end(), looks_like_it))
    return [metric](double value) { return text(value, metric); };
  const double scale = metric.is_fraction() ? 100 : 1;
  const char* const unit = metric.is_fraction()           ? " %"
                           : metric.unit == Unit::seconds ? " s"
                           : metric.unit == Unit::bytes   ? " bytes"
                                                          : "";
  std::vector<double> scaled;
  for (const double value : values) scaled.push_back(scale * value);
  const int decimals = decimals_beside({scale * limit}, scaled, 0);
  return [=](double value) { return fixed_text(scale * value, decimals) + unit; };
}

std::string half_width_text(double half_width, double mean, const Metric& metric) {
  if (metric.unit == Unit::tokens_per_second) return percent_text(half_width / mean);
  return text(half_width, metric);
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? decimals(loss, 4) : shortest(loss);
}

std::string fixed_text(double number, int count) {
  if (!std::isfinite(number)) return shortest(number);
  const std::string digits = decimals(std::abs(number), count);
  const bool is_zero = digits.find_first_not_of("0.") == std::string::npos;
  return number < 0 && !is_zero ? "\u2212" + digits : digits;
}

std::string throughput_text(double tokens_per_second) {
  if (!std::isfinite(tokens_per_second)) return shortest(tokens_per_second);
  // The limits are where rounding would give a digit more.
  if (tokens_per_second < 9999.5) return with_thousands(std::llround(tokens_per_second));
  if (tokens_per_second < 99950) return decimals(tokens_per_second / 1e3, 1) + "K";
  if (tokens_per_second < 999500) return decimals(tokens_per_second / 1e3, 0) + "K";
  return decimals(tokens_per_second / 1e6, 2) + "M";
}

std::string p_value_text(double p) {
  if (p < 0.0001) return "p < 0.0001";
  return "p " + decimals(p, p < 0.00095 ? 4 : p < 0.0995 ? 3 : 2);
}

std::string percent_text(double fraction) {
  return std::isfinite(fraction) ? fixed_text(100 * fraction, 1) + " %" : shortest(fraction);
}

std::string change_text(double change) {
  if (!std::isfinite(change)) return shortest(change);
  const double tenths = std::round(change * 1000);
  const char* sign = tenths < 0 ? "\u2212" : "+";
  return sign + decimals(std::abs(tenths) / 10, 1) + " %";
}

}  // namespace forge::results
