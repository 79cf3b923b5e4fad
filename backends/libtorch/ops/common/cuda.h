#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

/// What the GPU's kernels and those who start them share. Kernels compute in float32 whatever type
/// they read and write.
namespace forge::ops::cuda {

using bfloat16 = __nv_bfloat16;

/// Sequences of tokens [batch, length, channels], contiguous.
struct Sequences {
  int64_t batch, length, channels;
  const int32_t* doc_ids;  ///< [batch, length], or null: each row is one document
};

/// out[n] = the sum of partial[r][n] over all rows r, in a fixed order.
void add_rows(const float* partial, int64_t rows, int64_t columns, float* out, cudaStream_t stream);

}  // namespace forge::ops::cuda
