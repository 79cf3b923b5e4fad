#pragma once

#include <algorithm>
#include <vector>

namespace forge::worker {

/// The upper one of two in the middle. There must be a value.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace forge::worker
