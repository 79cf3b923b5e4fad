#include "backends/libtorch/ops/swiglu/swiglu.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/swiglu/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor swiglu_reference(const at::Tensor& gate_up) {
  const auto halves = gate_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

namespace {

/// y = silu(gate) * up; gate_up [N, 2I], y [N, I].
void forward(const at::Tensor& gate_up, at::Tensor& y) {
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

/// grad_gate = grad_y * up * silu'(gate), grad_up = grad_y * silu(gate).
void backward(const at::Tensor& gate_up, const at::Tensor& grad_y, at::Tensor& grad_gate_up) {
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

struct SwiGlu : public torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    ops::forward(gate_up, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    at::Tensor grad = at::empty_like(gate_up);
    ops::backward(gate_up, grad_outputs[0].contiguous(), grad);
    return {grad};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up) {
  TORCH_CHECK(gate_up.dim() >= 1 && gate_up.size(-1) % 2 == 0,
              "swiglu: the last dimension holds gate and up, so it must be even, is ",
              gate_up.sizes());
  if (!has_cpu_kernel(gate_up)) return swiglu_reference(gate_up);
  std::vector<int64_t> shape = gate_up.sizes().vec();
  shape.back() /= 2;
  return SwiGlu::apply(gate_up.contiguous().view({-1, gate_up.size(-1)})).view(shape);
}

}  // namespace forge::ops
