#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

namespace forge::ops {

inline bool has_cpu_kernel(const at::Tensor& x) {
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

/// FORGE_CUDA_ONLY marks a function that only a build with CUDA defines. Other builds never call
/// it, because has_cuda_kernel() is false there; as a weak symbol it may stay undefined.
#ifdef FORGE_WITH_CUDA
#define FORGE_CUDA_ONLY
constexpr bool built_with_cuda = true;
#else
#define FORGE_CUDA_ONLY __attribute__((weak))
constexpr bool built_with_cuda = false;
#endif

inline bool has_cuda_kernel(const at::Tensor& x) {
  return built_with_cuda && x.is_cuda() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

/// Whether rows of x can be read in vectors of 16 bytes, as most of the GPU's kernels do.
inline bool is_vector_aligned(const at::Tensor& x) { return x.size(-1) % 8 == 0; }

/// Whether the GPU has a norm over `channels` channels of x.
inline bool cuda_norm_supports(const at::Tensor& x, int64_t channels) {
  constexpr int64_t most_channels = 4096;
  return is_vector_aligned(x) && channels % 8 == 0 && channels <= most_channels;
}

/// Whether the CPU or the GPU has kernels for such a tensor.
inline bool has_kernel(const at::Tensor& x) { return has_cpu_kernel(x) || has_cuda_kernel(x); }

/// Whether there are kernels for products of such a tensor with matrices of `operands`: its own
/// type or, on a CPU, bfloat16, to which float32 is rounded.
inline bool has_product_kernel(const at::Tensor& x, at::ScalarType operands) {
  const bool is_rounded = x.is_cpu() && x.scalar_type() == at::kFloat && operands == at::kBFloat16;
  return has_kernel(x) && (x.scalar_type() == operands || is_rounded);
}

/// The type of the small weights (norms, taps) that go with activations of x's type.
inline at::ScalarType small_weight_type(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
}

/// Calls body(T()), T the C++ type of float32 or float64.
template <class Body>
void with_element_type(at::ScalarType type, const Body& body) {
  type == at::kFloat ? body(float()) : body(double());
}

/// Calls body(T(), E()) for operands of matrix products: E their C++ type, T that of the sums,
/// which is float for bfloat16 operands.
template <class Body>
void with_operand_type(at::ScalarType operands, const Body& body) {
  if (operands == at::kBFloat16) return body(float(), at::BFloat16());
  with_element_type(operands, [&](auto zero) { body(zero, zero); });
}

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
