#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <memory>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/canon_conv/kernels.h"
#include "backends/libtorch/ops/common/rows.h"

namespace forge::ops::canon {

/// The convolution of x [B, T, C]; a residual becomes part of the taps.
template <class T>
Problem<T> problem(const at::Tensor& x,
                   const at::Tensor& w,
                   bool residual,
                   const at::Tensor& doc_ids) {
  return {x.size(0),
          x.size(1),
          x.size(2),
          static_cast<int>(w.size(2)),
          taps_first(w.data_ptr<T>(), w.size(0), w.size(2), residual),
          doc_ids.defined() ? doc_ids.data_ptr<int32_t>() : nullptr};
}

/// Tokens begin … end-1 of one row of the batch.
struct Chunk {
  int64_t index, row, begin, end;
};

inline Chunk chunk_at(int64_t index, int64_t length) {
  const int64_t chunks_of_row = ops::chunk_count(length);
  const int64_t begin = index % chunks_of_row * chunk_rows;
  return {index, index / chunks_of_row, begin, std::min(begin + chunk_rows, length)};
}

inline int64_t chunk_count(int64_t batch, int64_t length) {
  return batch * ops::chunk_count(length);
}

/// Calls task(chunk) for every chunk of chunk_rows tokens, none of which goes over the end of a
/// row, on all threads. Chunks are fixed: sums are added up chunk by chunk, and their bits must not
/// depend on the number of threads.
template <class Task>
void for_each_chunk(int64_t batch, int64_t length, const Task& task) {
  at::parallel_for(0, chunk_count(batch, length), 1, [&](int64_t first, int64_t last) {
    for (int64_t index = first; index < last; ++index) {
      task(chunk_at(index, length));
    }
  });
}

/// The same with memory for `size` numbers, that a task writes before it reads: task(chunk,
/// memory).
template <class T, class Task>
void for_each_chunk_with_memory(int64_t batch, int64_t length, int64_t size, const Task& task) {
  at::parallel_for(0, chunk_count(batch, length), 1, [&](int64_t first, int64_t last) {
    const std::unique_ptr<T[]> memory(new T[size]);
    for (int64_t index = first; index < last; ++index) {
      task(chunk_at(index, length), memory.get());
    }
  });
}

}  // namespace forge::ops::canon
