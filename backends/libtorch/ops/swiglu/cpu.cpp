#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/swiglu/kernels.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void swiglu_forward_cpu(const at::Tensor& gate_up, at::Tensor& y) {
  with_element_type(y.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = y.size(1);
    for_each_row_chunk(y.size(0), [&](int64_t, int64_t begin, int64_t end) {
      const T* in = gate_up.data_ptr<T>();
      T* out = y.data_ptr<T>();
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          swiglu_token(width, in + row * 2 * width, out + row * width);
        }
      });
    });
  });
}

void swiglu_backward_cpu(const at::Tensor& gate_up,
                         const at::Tensor& grad_y,
                         at::Tensor& grad_gate_up) {
  with_element_type(grad_y.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = grad_y.size(1);
    for_each_row_chunk(grad_y.size(0), [&](int64_t, int64_t begin, int64_t end) {
      const T *in = gate_up.data_ptr<T>(), *upstream = grad_y.data_ptr<T>();
      T* out = grad_gate_up.data_ptr<T>();
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          swiglu_token_gradient(
              width, in + row * 2 * width, upstream + row * width, out + row * 2 * width);
        }
      });
    });
  });
}

}  // namespace forge::ops
