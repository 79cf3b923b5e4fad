#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace forge::ops::cuda {

/// A GPU has fewer multiprocessors; on a CUDA device their numbers may have gaps.
constexpr int64_t most_multiprocessors = 1024;

/// Writes what each multiprocessor has counted so far to `readings`, int64 [most_multiprocessors,
/// 2] on the device: cycles of its clock, and nanoseconds of the GPU's own timer. Leaves the lines
/// of others as they are.
void read_clock(int64_t* readings, cudaStream_t stream);

}  // namespace forge::ops::cuda
