#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [B, T, C] as rows of C.
at::Tensor rows(const at::Tensor& x) { return x.view({x.size(0) * x.size(1), x.size(2)}); }

struct NormLinearFunction : public torch::autograd::Function<NormLinearFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const at::Tensor& norm_w,
                               double eps,
                               bool round_before_weight,
                               const at::Tensor& canon,
                               bool residual,
                               const at::Tensor& doc_ids,
                               const at::Tensor& w,
                               const at::Tensor& rounded_w) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    context->set_materialize_grads(false);
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    context->saved_data["residual"] = residual;
    context->saved_data["weight_type"] = static_cast<int64_t>(w.scalar_type());
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(matrix.operand().scalar_type()));
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(doc_ids)};
    const RmsNormOptions norm{eps, round_before_weight};
    at::Tensor scales;
    if (x.is_cuda()) {
      scales = at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kFloat));
      norm_canon_forward_cuda(x, norm_w, norm, layer, y, scales);
    } else {
      norm_canon_forward_cpu(x, norm_w, norm, layer, y);
    }
    context->save_for_backward({x, norm_w, canon, doc_ids, matrix.operand(), scales});
    at::Tensor out = at::empty({x.size(0), x.size(1), w.size(0)}, x.options());
    at::Tensor out_rows = rows(out);
    linear_forward(rows(y), matrix.operand(), {}, out_rows);
    return {out, x};
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &norm_w = saved[1], &w = saved[4];
    const at::Tensor grad_residual =
        grad_outputs[1].defined() ? grad_outputs[1].contiguous() : at::Tensor();
    if (!grad_outputs[0].defined()) return {grad_residual, {}, {}, {}, {}, {}, {}, {}, {}};
    const RmsNormOptions norm{context->saved_data["eps"].toDouble(),
                              context->saved_data["round_before_weight"].toBool()};
    const CanonLayer layer{or_undefined(saved[2]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[3])};
    const auto weight_type =
        static_cast<at::ScalarType>(context->saved_data["weight_type"].toInt());
    const at::Tensor grad = as_operand(rows(grad_outputs[0].contiguous()), w.scalar_type());
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(w.scalar_type()));
    at::Tensor grad_w = at::empty(w.sizes(), w.options().dtype(weight_type));
    at::Tensor grad_x = at::empty_like(x), grad_norm_w = at::empty_like(norm_w), grad_canon;
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    if (x.is_cuda()) {
      at::Tensor grad_y = at::empty_like(x), grad_y_rows = rows(grad_y);
      linear_backward_x(grad, w, grad_y_rows);
      norm_canon_backward_cuda(x,
                               norm_w,
                               norm,
                               layer,
                               saved[5],
                               grad_y,
                               grad_residual,
                               y,
                               grad_x,
                               grad_norm_w,
                               grad_canon);
      linear_backward_w(grad, rows(y), grad_w);
      return {grad_x, grad_norm_w, {}, {}, grad_canon, {}, {}, grad_w, {}};
    }
    norm_canon_forward_cpu(x, norm_w, norm, layer, y);
    linear_backward_w(grad, rows(y), grad_w);
    // y is no longer needed.
    at::Tensor grad_y = y.scalar_type() == x.scalar_type() ? y : at::empty_like(x);
    at::Tensor grad_y_rows = rows(grad_y);
    linear_backward_x(grad, w, grad_y_rows);
    norm_canon_backward_cpu(
        x, norm_w, norm, layer, grad_y, grad_residual, grad_x, grad_norm_w, grad_canon);
    return {grad_x, grad_norm_w, {}, {}, grad_canon, {}, {}, grad_w, {}};
  }
};

}  // namespace

NormLinear norm_linear(const at::Tensor& x,
                       const at::Tensor& norm_w,
                       const RmsNormOptions& norm,
                       const CanonLayer& canon,
                       const WeightMatrix& w) {
  const at::Tensor& operand = w.operand();
  TORCH_CHECK(x.dim() == 3 && norm_w.dim() == 1 && operand.dim() == 2 &&
                  x.size(2) == norm_w.size(0) && x.size(2) == operand.size(1),
              "norm_linear: x must be [batch, tokens, channels], norm_w [channels] and w [any, "
              "channels], are ",
              x.sizes(),
              ", ",
              norm_w.sizes(),
              " and ",
              operand.sizes());
  if (canon.weight.defined()) check_canon_shapes(x, canon.weight, canon.doc_ids);
  const bool fused = has_product_kernel(x, operand.scalar_type()) &&
                     norm_w.scalar_type() == small_weight_type(x) &&
                     (x.is_cpu() || fits_cuda_norm(x, x.size(2))) &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return {ops::linear(canon_layer(rms_norm(x, norm_w, norm), canon), w), x};
  const variable_list results = NormLinearFunction::apply(x.contiguous(),
                                                          norm_w.contiguous(),
                                                          norm.eps,
                                                          norm.round_before_weight,
                                                          or_empty(canon.weight),
                                                          canon.options.residual,
                                                          or_empty(canon.doc_ids),
                                                          w.stored.contiguous(),
                                                          or_empty(w.rounded));
  return {results[0], results[1]};
}

}  // namespace forge::ops
