#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

template <class T>
FORGE_INLINE void forward_rows(int64_t begin, int64_t end, int64_t width, const T* gate_up, T* y) {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = gate_up + row * 2 * width;
    const T* up = gate + width;
    T* __restrict out = y + row * width;
    for (int64_t i = 0; i < width; ++i) out[i] = gate[i] / (1 + fast_exp(-gate[i])) * up[i];
  }
}

/// With s = sigmoid(gate): d silu = s (1 + gate (1 - s)).
template <class T>
FORGE_INLINE void backward_rows(
    int64_t begin, int64_t end, int64_t width, const T* gate_up, const T* grad_y, T* grad_gate_up) {
  for (int64_t row = begin; row < end; ++row) {
    const T* gate = gate_up + row * 2 * width;
    const T* up = gate + width;
    const T* grad = grad_y + row * width;
    T* __restrict grad_gate = grad_gate_up + row * 2 * width;
    T* __restrict grad_up = grad_gate + width;
    for (int64_t i = 0; i < width; ++i) {
      const T s = 1 / (1 + fast_exp(-gate[i]));
      grad_gate[i] = grad[i] * up[i] * (s * (1 + gate[i] * (1 - s)));
      grad_up[i] = grad[i] * (gate[i] * s);
    }
  }
}

template <class T>
void forward(const at::Tensor& gate_up, at::Tensor& y) {
  for_each_row_chunk(gate_up.size(0), [&](int64_t, int64_t begin, int64_t end) {
    with_simd([&]() FORGE_SIMD_BODY {
      forward_rows(begin, end, y.size(1), gate_up.data_ptr<T>(), y.data_ptr<T>());
    });
  });
}
template <class T>
void backward(const at::Tensor& gate_up, const at::Tensor& grad_y, at::Tensor& grad) {
  for_each_row_chunk(gate_up.size(0), [&](int64_t, int64_t begin, int64_t end) {
    with_simd([&]() FORGE_SIMD_BODY {
      backward_rows(begin,
                    end,
                    grad_y.size(1),
                    gate_up.data_ptr<T>(),
                    grad_y.data_ptr<T>(),
                    grad.data_ptr<T>());
    });
  });
}

}  // namespace

void swiglu_forward_cpu(const at::Tensor& gate_up, at::Tensor& y) {
  y.scalar_type() == at::kFloat ? forward<float>(gate_up, y) : forward<double>(gate_up, y);
}

void swiglu_backward_cpu(const at::Tensor& gate_up,
                         const at::Tensor& grad_y,
                         at::Tensor& grad_gate_up) {
  grad_y.scalar_type() == at::kFloat ? backward<float>(gate_up, grad_y, grad_gate_up)
                                     : backward<double>(gate_up, grad_y, grad_gate_up);
}

}  // namespace forge::ops
