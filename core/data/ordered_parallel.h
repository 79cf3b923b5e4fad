#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace forge::data {

/// Calls `make(0)`, `make(1)`, … on all cores and `take` with what they gave, in order, on the
/// calling thread, until `take` returns false or `count` results are taken (count < 0: no end). At
/// most two results a core are held at a time. What either throws is thrown here, after the calls
/// that are under way have ended.
void ordered_parallel(int64_t count,
                      const std::function<std::vector<int32_t>(int64_t)>& make,
                      const std::function<bool(const std::vector<int32_t>&)>& take);

}  // namespace forge::data
