#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace forge {

/// Called as work goes on: so many things or bytes of all are done. Work in several parts counts
/// from 0 in each. May be empty. What it throws ends the work.
using CountProgress = std::function<void(size_t done, size_t all)>;

/// For work that tells the size of each piece that it is through with. `progress` outlives it.
inline std::function<void(int64_t)> count_bytes(const CountProgress& progress, int64_t all) {
  if (!progress) return {};
  return [&progress, all, done = int64_t{0}](int64_t bytes) mutable {
    progress(static_cast<size_t>(done += bytes), static_cast<size_t>(all));
  };
}

}  // namespace forge
