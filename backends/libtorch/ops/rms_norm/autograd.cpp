#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
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

/// On a GPU: norm_linear's kernels without a convolution, rows as the tokens of one sequence.
struct RmsNormCuda : public torch::autograd::Function<RmsNormCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            double eps,
                            bool round_before_weight) {
    context->save_for_backward({x, w});
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    at::Tensor y = at::empty_like(x);
    norm_canon_forward_cuda(x, w, {eps, round_before_weight}, {}, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const RmsNormOptions options{context->saved_data["eps"].toDouble(),
                                 context->saved_data["round_before_weight"].toBool()};
    at::Tensor grad_x = at::empty_like(saved[0]), grad_w = at::empty_like(saved[1]);
    at::Tensor no_output, no_taps;
    norm_canon_backward_cuda(saved[0],
                             saved[1],
                             options,
                             {},
                             grad_outputs[0].contiguous(),
                             {},
                             no_output,
                             grad_x,
                             grad_w,
                             no_taps);
    return {grad_x, grad_w, {}, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, const RmsNormOptions& options) {
  TORCH_CHECK(w.dim() == 1 && x.dim() >= 1 && x.size(-1) == w.size(0),
              "rms_norm: x must be [..., ",
              w.size(0),
              "], is ",
              x.sizes());
  const bool fits = x.is_cpu() || fits_cuda_norm(x);
  if (!has_kernel(x) || !fits || w.scalar_type() != small_weight_type(x))
    return rms_norm_reference(x, w, options);
  if (x.is_cuda()) {
    return RmsNormCuda::apply(x.contiguous().view({1, -1, x.size(-1)}),
                              w.contiguous(),
                              options.eps,
                              options.round_before_weight)
        .view(x.sizes());
  }
  return RmsNorm::apply(x.contiguous().view({-1, x.size(-1)}), w.contiguous(), options.eps)
      .view(x.sizes());
}

}  // namespace forge::ops
