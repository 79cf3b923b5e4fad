#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

namespace forge::ops {

// Rows of a task. Fixed: sums over rows are added up chunk by chunk, and their bits must not depend
// on the number of threads.
constexpr int64_t chunk_rows = 64;

inline int64_t chunk_count(int64_t rows) { return (rows + chunk_rows - 1) / chunk_rows; }

/// Calls task(chunk, first row, last row + 1) for every chunk of `rows`, on all threads.
template <class Task>
void for_each_row_chunk(int64_t rows, const Task& task) {
  at::parallel_for(0, chunk_count(rows), 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      task(chunk, chunk * chunk_rows, std::min((chunk + 1) * chunk_rows, rows));
    }
  });
}

}  // namespace forge::ops
