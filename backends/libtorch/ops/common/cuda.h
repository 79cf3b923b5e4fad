#pragma once

#include <cstdint>
#include <functional>

// Tests compile kernels for the CPU too: tests/support/cuda_emulation.h comes first there.
#ifndef FORGE_CUDA_EMULATION
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#endif

/// What the kernels and their callers share. Kernels know no Torch; they compute in float32
/// whatever type they read and write.
namespace forge::ops::cuda {

#ifndef FORGE_CUDA_EMULATION
using bfloat16 = __nv_bfloat16;
#endif

/// out[n] = the sum of partial[r][n] over all rows r, in a fixed order.
void add_rows(const float* partial, int64_t rows, int64_t columns, float* out, cudaStream_t stream);

/// Returns device memory for `rows` rows of sums. A kernel's launcher knows how many blocks there
/// are, and each of them writes one row; the caller knows the columns and adds the rows up.
using AllocateRows = std::function<float*(int64_t rows)>;

}  // namespace forge::ops::cuda
