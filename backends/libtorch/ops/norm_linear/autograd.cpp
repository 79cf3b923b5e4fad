#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [B, T, C] as rows of C.
at::Tensor rows(const at::Tensor& x) { return x.view({x.size(0) * x.size(1), x.size(2)}); }

struct NormLinear : public torch::autograd::Function<NormLinear> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& norm_w,
                            double eps,
                            const at::Tensor& canon,
                            bool residual,
                            const at::Tensor& doc_ids,
                            const at::Tensor& w) {
    context->save_for_backward({x, norm_w, canon, doc_ids, w});
    context->saved_data["eps"] = eps;
    context->saved_data["residual"] = residual;
    at::Tensor y = at::empty_like(x);
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(doc_ids)};
    norm_canon_forward_cpu(x, norm_w, eps, layer, y);
    at::Tensor out = at::empty({x.size(0), x.size(1), w.size(0)}, x.options());
    at::Tensor out_rows = rows(out);
    linear_forward_cpu(rows(y), w, out_rows);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &norm_w = saved[1], &w = saved[4];
    const double eps = context->saved_data["eps"].toDouble();
    const CanonLayer layer{or_undefined(saved[2]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[3])};
    const at::Tensor grad = rows(grad_outputs[0].contiguous());
    at::Tensor y = at::empty_like(x), grad_w = at::empty_like(w);
    norm_canon_forward_cpu(x, norm_w, eps, layer, y);
    linear_backward_w_cpu(grad, rows(y), grad_w);
    at::Tensor grad_y = y, grad_y_rows = rows(grad_y);  // y is no longer needed
    linear_backward_x_cpu(grad, w, grad_y_rows);
    at::Tensor grad_x = at::empty_like(x), grad_norm_w = at::empty_like(norm_w), grad_canon;
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    norm_canon_backward_cpu(x, norm_w, eps, layer, grad_y, grad_x, grad_norm_w, grad_canon);
    return {grad_x, grad_norm_w, {}, grad_canon, {}, {}, grad_w};
  }
};

}  // namespace

at::Tensor norm_linear(const at::Tensor& x,
                       const at::Tensor& norm_w,
                       const RmsNormOptions& norm,
                       const CanonLayer& canon,
                       const at::Tensor& w) {
  TORCH_CHECK(x.dim() == 3 && norm_w.dim() == 1 && w.dim() == 2 && x.size(2) == norm_w.size(0) &&
                  x.size(2) == w.size(1),
              "norm_linear: x must be [batch, tokens, channels], norm_w [channels] and w [any, "
              "channels], are ",
              x.sizes(),
              ", ",
              norm_w.sizes(),
              " and ",
              w.sizes());
  if (canon.weight.defined()) check_canon_shapes(x, canon.weight, canon.doc_ids);
  const bool fused = has_cpu_kernel(x) && x.scalar_type() == norm_w.scalar_type() &&
                     x.scalar_type() == w.scalar_type() &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return ops::linear(canon_layer(rms_norm(x, norm_w, norm), canon), w);
  return NormLinear::apply(x.contiguous(),
                           norm_w.contiguous(),
                           norm.eps,
                           or_empty(canon.weight),
                           canon.options.residual,
                           or_empty(canon.doc_ids),
                           w.contiguous());
}

}  // namespace forge::ops
