#pragma once

#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>

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

/// Sums over the tokens of x, [columns] in float32: each block of a kernel writes a row of them,
/// and the rows are added in a fixed order.
class BlockSums {
 public:
  BlockSums(const at::Tensor& x, int64_t columns) : x_(x), columns_(columns) {}

  /// What a kernel's launcher takes. Without tokens no kernel runs, and the sums are zeros.
  AllocateRows allocate() {
    return [this](int64_t rows) {
      const at::TensorOptions options = x_.options().dtype(at::kFloat);
      rows_ = x_.numel() == 0 ? at::zeros({1, columns_}, options)
                              : at::empty({rows, columns_}, options);
      return write<float>(rows_);
    };
  }

  at::Tensor total() const {
    at::Tensor sums = at::empty({columns_}, rows_.options());
    add_rows(read<float>(rows_), rows_.size(0), columns_, write<float>(sums), current_stream());
    return sums;
  }

 private:
  const at::Tensor x_;
  const int64_t columns_;
  at::Tensor rows_;
};

}  // namespace forge::ops::cuda
