#include "core/statistics/holm.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::statistics {

std::vector<std::optional<double>> holm_adjusted(const std::vector<std::optional<double>>& p) {
  std::vector<size_t> tested;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!p[i] || std::isnan(*p[i])) continue;
    if (*p[i] < 0 || *p[i] > 1) throw Error("a p lies in 0 to 1, " + shortest(*p[i]) + " does not");
    tested.push_back(i);
  }
  std::stable_sort(tested.begin(), tested.end(), [&](size_t a, size_t b) { return *p[a] < *p[b]; });

  // The smallest is multiplied by the number of tests, the next by one less; none may fall below
  // one before it.
  std::vector<std::optional<double>> adjusted(p.size());
  double floor = 0;
  for (size_t rank = 0; rank < tested.size(); ++rank) {
    const double multiplied = static_cast<double>(tested.size() - rank) * *p[tested[rank]];
    floor = std::max(floor, std::min(1.0, multiplied));
    adjusted[tested[rank]] = floor;
  }
  return adjusted;
}

}  // namespace forge::statistics
