#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>
#include <string>

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

}  // namespace forge::ops
