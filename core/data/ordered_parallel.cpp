#include "core/data/ordered_parallel.h"

namespace forge::data {

void ordered_parallel(int64_t count,
                      const std::function<std::vector<int32_t>(int64_t)>& make,
                      const std::function<bool(const std::vector<int32_t>&)>& take) {
  int64_t started = 0;
  const auto next = [&]() -> std::optional<int64_t> {
    if (count >= 0 && started >= count) return std::nullopt;
    return started++;
  };
  ordered_pipeline<int64_t, std::vector<int32_t>>(next, make, take);
}

}  // namespace forge::data
