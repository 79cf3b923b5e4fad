#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// A contiguous matrix on a GPU as a factor; where `transposed`, its transpose.
struct CudaOperand {
  at::Tensor matrix;
  bool transposed = false;
};

/// c = a b [+ added] through cuBLASLt, on the current stream. a and b are of one type, float32 (no
/// TF32) or bfloat16 with float32 sums; c of that type or float32; `added` like c, or c itself.
/// Rows of c and `added` may lie apart (stride(0) > columns). Which algorithm is taken depends on
/// the shapes alone, so the same call gives the same bits.
void gemm_cuda(const CudaOperand& a, const CudaOperand& b, const at::Tensor& added, at::Tensor& c);

}  // namespace forge::ops
