#include "core/benchmark/statistics.h"

#include <algorithm>
#include <cmath>

namespace forge::benchmark {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

double spread(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / median(values);
}

std::vector<double> ratios(const std::vector<double>& own, const std::vector<double>& others) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(own.size(), others.size()); ++i) {
    result.push_back(own[i] / others[i]);
  }
  return result;
}

}  // namespace forge::benchmark
