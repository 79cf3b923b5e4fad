#pragma once

#include <cstddef>

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// y[i] = w[ids[i]], rows of `channels`, a multiple of 8.
template <class T>
void gather_rows(
    const T* w, const int32_t* ids, int64_t count, int64_t channels, T* y, cudaStream_t stream);

/// Returns `bytes` of device memory.
using Allocate = std::function<void*(size_t bytes)>;

/// grad_w[id] = the sum of grad_y over the positions of that id among `ids` [count], in their
/// order; zeros for an id without positions.
template <class T, class Out>
void sum_rows_by_id(const int32_t* ids,
                    int64_t count,
                    const T* grad_y,
                    int64_t vocabulary,
                    int64_t channels,
                    Out* grad_w,
                    const Allocate& allocate,
                    cudaStream_t stream);

}  // namespace forge::ops::cuda
