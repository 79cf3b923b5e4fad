#pragma once

#include <cstdint>
#include <string>

#include <c10/util/BFloat16.h>

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// A row-major matrix in memory. Where `transposed`, its rows are the columns of the operand.
template <class T>
struct Operand {
  const T* data;
  int64_t stride;  ///< elements from one row in memory to the next
  bool transposed = false;
};

template <class T>
Operand<T> transposed(const Operand<T>& operand) {
  return {operand.data, operand.stride, !operand.transposed};
}

/// C [m, n], what the product of A [m, k] and B [k, n] goes to: row-major in memory.
template <class T>
struct Product {
  int64_t m, n, k;
  T* data;
  int64_t stride;    ///< elements from row to row
  bool add = false;  ///< to what stands there
};

/// C = A B [+ C] on CPU memory. On all threads, or on the calling one alone inside of a parallel
/// region. The library is chosen by shape, never by timing, so the same call gives the same bits.
void gemm(const Product<float>& c, const Operand<float>& a, const Operand<float>& b);
void gemm(const Product<double>& c, const Operand<double>& a, const Operand<double>& b);

/// Sums in float32. A CPU without instructions for bfloat16 uses gemm_in_float32.
void gemm(const Product<float>& c,
          const Operand<c10::BFloat16>& a,
          const Operand<c10::BFloat16>& b);

/// The same on any CPU, slower than a product of floats: operands are widened first, which changes
/// no product, only the order of the sums.
void gemm_in_float32(const Product<float>& c,
                     const Operand<c10::BFloat16>& a,
                     const Operand<c10::BFloat16>& b);

/// What multiplies large matrices of floats here: "onednn" or "blas".
std::string gemm_library();

/// What multiplies matrices of bfloat16 here: "onednn", or "float32" where the CPU has no
/// instructions for them or the library does not give its function away.
std::string bfloat16_gemm_library();

/// x as an operand of matrix products of type `type`: x itself where it has that type, or, float32
/// on the CPU, a contiguous copy rounded to the nearest bfloat16. Sums stay float32.
at::Tensor as_operand(const at::Tensor& x, at::ScalarType type);

/// A matrix on a GPU as a factor, its rows in one piece each; where `transposed`, its transpose.
struct CudaOperand {
  at::Tensor matrix;
  bool transposed = false;
};

/// c = a b [+ added] through cuBLASLt, on the current stream. a and b are of one type, float32 (no
/// TF32) or bfloat16 with float32 sums; c of that type or float32; `added` like c, or c itself.
/// Rows of c and `added` may lie apart (stride(0) > columns). Which algorithm is taken depends on
/// the shapes alone, so the same call gives the same bits.
FORGE_CUDA_ONLY void gemm_cuda(const CudaOperand& a,
                               const CudaOperand& b,
                               const at::Tensor& added,
                               at::Tensor& c);

}  // namespace forge::ops
