#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Rotary : public torch::autograd::Function<Rotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& cos,
                            const at::Tensor& sin,
                            bool interleaved) {
    context->save_for_backward({cos, sin});
    context->saved_data["interleaved"] = interleaved;
    at::Tensor y = at::empty(x.sizes(), x.options());
    rotary_cpu(x, {cos, sin, interleaved}, +1, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grad_outputs[0].contiguous();
    at::Tensor grad_x = at::empty(grad.sizes(), grad.options());
    rotary_cpu(grad, {saved[0], saved[1], context->saved_data["interleaved"].toBool()}, -1, grad_x);
    return {grad_x, {}, {}, {}};
  }
};

}  // namespace

at::Tensor rotary(const at::Tensor& x, const RotaryTable& table) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) <= table.cos.size(0) && x.size(3) >= 2 * table.cos.size(1),
              "rotary: x must be [batch, up to ",
              table.cos.size(0),
              " tokens, heads, at least ",
              2 * table.cos.size(1),
              "], is ",
              x.sizes());
  const bool fused = x.is_cpu() && x.stride(3) == 1 && x.scalar_type() == table.cos.scalar_type() &&
                     (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  return fused ? Rotary::apply(x, table.cos, table.sin, table.interleaved)
               : rotary_reference(x, table);
}

}  // namespace forge::ops
