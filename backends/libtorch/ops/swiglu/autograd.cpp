#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct SwiGlu : public torch::autograd::Function<SwiGlu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    at::Tensor y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    swiglu_forward_cpu(gate_up, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    at::Tensor grad = at::empty_like(gate_up);
    swiglu_backward_cpu(gate_up, grad_outputs[0].contiguous(), grad);
    return {grad};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up) {
  TORCH_CHECK(gate_up.dim() >= 1 && gate_up.size(-1) % 2 == 0,
              "swiglu: the last dimension holds gate and up, so it must be even, is ",
              gate_up.sizes());
  const bool fused = gate_up.is_cpu() &&
                     (gate_up.scalar_type() == at::kFloat || gate_up.scalar_type() == at::kDouble);
  if (!fused) return swiglu_reference(gate_up);
  std::vector<int64_t> shape = gate_up.sizes().vec();
  shape.back() /= 2;
  return SwiGlu::apply(gate_up.contiguous().view({-1, gate_up.size(-1)})).view(shape);
}

}  // namespace forge::ops
