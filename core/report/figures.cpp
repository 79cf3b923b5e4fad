#include "core/report/figures.h"

#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/report/scores.h"

namespace forge::report {
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

}  // namespace forge::report
