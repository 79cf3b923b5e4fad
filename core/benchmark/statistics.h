#pragma once

#include <vector>

namespace forge::benchmark {

/// The value below which a share of the values lies, 0 to 1, between two of them by linear
/// interpolation (numpy's default); NaN for no values.
double quantile(std::vector<double> values, double share);

double median(const std::vector<double>& values);

/// Half of the interquartile range over the median: what the middle half of the windows lies
/// within, as a fraction. A single slow window does not move it. 0 for fewer than two values.
double spread(const std::vector<double>& values);

/// Values over those measured beside them, pair by pair, as far as both go: what slows the machine
/// for a while slows both and leaves the ratio alone.
std::vector<double> ratios(const std::vector<double>& own, const std::vector<double>& others);

}  // namespace forge::benchmark
