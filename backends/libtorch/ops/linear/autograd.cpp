#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Linear : public torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w) {
    context->save_for_backward({x, w});
    at::Tensor y = at::empty({x.size(0), w.size(0)}, x.options());
    linear_forward_cpu(x, w, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grad_outputs[0].contiguous();
    at::Tensor grad_x = at::empty_like(saved[0]);
    at::Tensor grad_w = at::empty_like(saved[1]);
    linear_backward_w_cpu(grad, saved[0], grad_w);
    linear_backward_x_cpu(grad, saved[1], grad_x);
    return {grad_x, grad_w};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& w) {
  TORCH_CHECK(w.dim() == 2 && x.dim() >= 1 && x.size(-1) == w.size(1),
              "linear: x must be [..., ",
              w.dim() == 2 ? w.size(1) : -1,
              "], is ",
              x.sizes());
  const bool fused = x.is_cpu() && x.scalar_type() == w.scalar_type() &&
                     (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  if (!fused) return at::linear(x, w);
  std::vector<int64_t> shape = x.sizes().vec();
  const int64_t rows = x.numel() / std::max<int64_t>(1, shape.back());
  shape.back() = w.size(0);
  return Linear::apply(x.contiguous().view({rows, w.size(1)}), w.contiguous()).view(shape);
}

}  // namespace forge::ops
