#pragma once

#include <cstddef>

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// y[i] = w[ids[i]], rows of `channels`, a multiple of 8.
template <class T>
void gather_rows(
    const T* w, const int32_t* ids, int64_t count, int64_t channels, T* y, cudaStream_t stream);

/// Bytes of memory that sort_ids needs.
size_t sort_ids_bytes(int64_t count, int64_t vocabulary);

/// The positions 0 … count - 1 sorted by their ids, stably, and for each id of the vocabulary where
/// its positions begin and end in that order (both 0 if it has none).
struct SortedIds {
  int32_t* sorted;     ///< [count]
  int32_t* positions;  ///< [count]
  int32_t* begins;     ///< [vocabulary]
  int32_t* ends;       ///< [vocabulary]
};
void sort_ids(const int32_t* ids,
              int64_t count,
              int64_t vocabulary,
              int32_t* unsorted_positions,  ///< [count], written
              const SortedIds& out,
              void* memory,
              size_t bytes,
              cudaStream_t stream);

/// grad_w[id] = the sum of grad_y over the id's positions, in their order.
template <class T, class Out>
void add_rows_of_ids(const SortedIds& ids,
                     const T* grad_y,
                     int64_t vocabulary,
                     int64_t channels,
                     Out* grad_w,
                     cudaStream_t stream);

}  // namespace forge::ops::cuda
