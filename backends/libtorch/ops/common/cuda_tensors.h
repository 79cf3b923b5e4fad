#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/cuda.h"
#include "backends/libtorch/torch_precompiled.h"

/// Tensors as the kernels take them.
namespace forge::ops::cuda {

template <class T>
const T* read(const at::Tensor& x) {
  return x.defined() ? static_cast<const T*>(x.data_ptr()) : nullptr;
}
template <class T>
T* write(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

inline cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream(); }

/// Calls run(T{}) with the element type of x.
template <class Run>
void with_type(const at::Tensor& x, const Run& run) {
  x.scalar_type() == at::kBFloat16 ? run(bfloat16{}) : run(float{});
}

/// x [B, T, C] with the documents of a layer.
inline Sequences sequences_of(const at::Tensor& x, const CanonLayer& layer) {
  return {x.size(0), x.size(1), x.size(2), read<int32_t>(layer.doc_ids)};
}

/// Memory for rows of sums over the tokens of x, which a kernel writes: without tokens none does,
/// and it is a row of zeros.
inline at::Tensor rows_of_sums(const at::Tensor& x, int64_t rows, int64_t columns) {
  const at::TensorOptions options = x.options().dtype(at::kFloat);
  return x.numel() == 0 ? at::zeros({1, columns}, options) : at::empty({rows, columns}, options);
}

/// The sum of each column.
inline at::Tensor sum_of_rows(const at::Tensor& rows) {
  at::Tensor sums = at::empty({rows.size(1)}, rows.options());
  add_rows(read<float>(rows), rows.size(0), rows.size(1), write<float>(sums), current_stream());
  return sums;
}

/// Taps of a layer's convolution; 0 without one.
inline int taps_of(const CanonLayer& layer) {
  return layer.weight.defined() ? static_cast<int>(layer.weight.size(2)) : 0;
}

}  // namespace forge::ops::cuda
