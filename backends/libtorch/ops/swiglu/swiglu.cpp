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

void swiglu_forward_cpu(const at::Tensor& gate_up, at::Tensor& y) {
  with_operand_type(y.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const int64_t width = y.size(-1);
    for_each_row_chunk(y.numel() / std::max<int64_t>(width, 1),
                       [&](int64_t, int64_t begin, int64_t end) {
                         const T* in = gate_up.data_ptr<T>();
                         Out* out = y.data_ptr<Out>();
                         with_simd([&]() FORGE_SIMD_BODY {
                           for (int64_t t = begin; t < end; ++t) {
                             swiglu_token(width, in + t * 2 * width, out + t * width);
                           }
                         });
                       });
  });
}

void swiglu_backward_cpu(const at::Tensor& gate_up,
                         const at::Tensor& grad_y,
                         at::Tensor& y,
                         at::Tensor& grad_gate_up) {
  with_operand_type((y.defined() ? y : grad_y).scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const int64_t width = grad_y.size(-1);
    for_each_row_chunk(
        grad_y.numel() / std::max<int64_t>(width, 1), [&](int64_t, int64_t begin, int64_t end) {
          const T *in = gate_up.data_ptr<T>(), *grad = grad_y.data_ptr<T>();
          T* grad_in = grad_gate_up.data_ptr<T>();
          Out* out = y.defined() ? y.data_ptr<Out>() : nullptr;
          with_simd([&]() FORGE_SIMD_BODY {
            for (int64_t t = begin; t < end; ++t) {
              const int64_t token = t * width;
              if (out) {
                swiglu_token_both(
                    width, in + 2 * token, grad + token, grad_in + 2 * token, out + token);
              } else {
                swiglu_token_gradient(width, in + 2 * token, grad + token, grad_in + 2 * token);
              }
            }
          });
        });
  });
}

namespace {

struct SwiGlu : public torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    swiglu_forward_cpu(gate_up, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    at::Tensor grad = at::empty_like(gate_up), no_output;
    swiglu_backward_cpu(gate_up, grad_outputs[0].contiguous(), no_output, grad);
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
