#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [B, T, C] as rows of C.
at::Tensor rows(const at::Tensor& x) { return x.view({x.size(0) * x.size(1), x.size(2)}); }

struct SwiGluLinear : public torch::autograd::Function<SwiGluLinear> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& gate_up,
                            const at::Tensor& canon,
                            bool residual,
                            const at::Tensor& doc_ids,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& stream) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    context->save_for_backward({gate_up, canon, doc_ids, matrix.operand()});
    context->saved_data["residual"] = residual;
    context->saved_data["weight_type"] = static_cast<int64_t>(w.scalar_type());
    context->saved_data["adds"] = or_undefined(stream).defined();
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor y = at::empty({batch, length, w.size(1)}, matrix.operand().options());
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(doc_ids)};
    gate_up.is_cuda() ? canon_swiglu_forward_cuda(gate_up, layer, y)
                      : canon_swiglu_forward_cpu(gate_up, layer, y);
    at::Tensor out = at::empty({batch, length, w.size(0)}, gate_up.options());
    at::Tensor out_rows = rows(out);
    const at::Tensor added = or_undefined(stream);
    linear_forward(rows(y), matrix.operand(), added.defined() ? rows(added) : added, out_rows);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate_up = saved[0], &w = saved[3];
    const CanonLayer layer{or_undefined(saved[1]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[2])};
    const auto weight_type =
        static_cast<at::ScalarType>(context->saved_data["weight_type"].toInt());
    const at::Tensor grad_out = grad_outputs[0].contiguous();
    const at::Tensor grad = as_operand(rows(grad_out), w.scalar_type());
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor y = at::empty({batch, length, w.size(1)}, w.options());
    at::Tensor grad_y = at::empty(y.sizes(), gate_up.options()), grad_y_rows = rows(grad_y);
    at::Tensor grad_gate_up = at::empty_like(gate_up), grad_canon;
    at::Tensor grad_w = at::empty(w.sizes(), w.options().dtype(weight_type));
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    linear_backward_x(grad, w, grad_y_rows);
    const auto run = gate_up.is_cuda() ? canon_swiglu_backward_cuda : canon_swiglu_backward_cpu;
    run(gate_up, layer, grad_y, y, grad_gate_up, grad_canon);
    linear_backward_w(grad, rows(y), grad_w);
    const bool adds = context->saved_data["adds"].toBool();
    return {grad_gate_up, grad_canon, {}, {}, grad_w, {}, adds ? grad_out : at::Tensor()};
  }
};

}  // namespace

at::Tensor swiglu_linear(const at::Tensor& gate_up,
                         const CanonLayer& canon,
                         const WeightMatrix& w,
                         const at::Tensor& residual) {
  const at::Tensor& operand = w.operand();
  TORCH_CHECK(gate_up.dim() == 3 && operand.dim() == 2 && gate_up.size(2) == 2 * operand.size(1),
              "swiglu_linear: gate_up must be [batch, tokens, 2 * ",
              operand.dim() == 2 ? operand.size(1) : -1,
              "], is ",
              gate_up.sizes());
  TORCH_CHECK(!residual.defined() ||
                  (residual.dim() == 3 && residual.size(0) == gate_up.size(0) &&
                   residual.size(1) == gate_up.size(1) && residual.size(2) == operand.size(0)),
              "swiglu_linear: the residual must be [batch, tokens, ",
              operand.size(0),
              "], is ",
              residual.sizes());
  if (canon.weight.defined()) check_canon_shapes(gate_up, canon.weight, canon.doc_ids);
  const bool fused = has_product_kernel(gate_up, operand.scalar_type()) &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return ops::linear(swiglu(canon_layer(gate_up, canon)), w, residual);
  return SwiGluLinear::apply(gate_up.contiguous(),
                             or_empty(canon.weight),
                             canon.options.residual,
                             or_empty(canon.doc_ids),
                             w.stored.contiguous(),
                             or_empty(w.rounded),
                             or_empty(residual));
}

}  // namespace forge::ops
