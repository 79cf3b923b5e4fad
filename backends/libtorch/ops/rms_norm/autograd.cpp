#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            double eps) {
    at::Tensor y = at::empty_like(x);
    at::Tensor scale = at::empty({x.size(0)}, x.options());
    rms_norm_forward_cpu(x, w, eps, y, scale);
    context->save_for_backward({x, w, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor grad_x = at::empty_like(saved[0]);
    at::Tensor grad_w = at::empty_like(saved[1]);
    rms_norm_backward_cpu(
        saved[0], saved[1], saved[2], grad_outputs[0].contiguous(), grad_x, grad_w);
    return {grad_x, grad_w, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, const RmsNormOptions& options) {
  TORCH_CHECK(w.dim() == 1 && x.dim() >= 1 && x.size(-1) == w.size(0),
              "rms_norm: x must be [..., ",
              w.size(0),
              "], is ",
              x.sizes());
  const bool fused = x.is_cpu() && x.scalar_type() == w.scalar_type() &&
                     (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  if (!fused) return rms_norm_reference(x, w, options);
  return RmsNorm::apply(x.contiguous().view({-1, x.size(-1)}), w.contiguous(), options.eps)
      .view(x.sizes());
}

}  // namespace forge::ops
