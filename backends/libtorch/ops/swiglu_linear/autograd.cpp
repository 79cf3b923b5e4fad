#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/linear/linear.h"
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
                            const at::Tensor& w) {
    context->save_for_backward({gate_up, canon, doc_ids, w});
    context->saved_data["residual"] = residual;
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor y = at::empty({batch, length, w.size(1)}, gate_up.options());
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(doc_ids)};
    canon_swiglu_forward_cpu(gate_up, layer, y);
    at::Tensor out = at::empty({batch, length, w.size(0)}, gate_up.options());
    at::Tensor out_rows = rows(out);
    linear_forward_cpu(rows(y), w, out_rows);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &gate_up = saved[0], &w = saved[3];
    const CanonLayer layer{or_undefined(saved[1]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[2])};
    const at::Tensor grad = rows(grad_outputs[0].contiguous());
    const int64_t batch = gate_up.size(0), length = gate_up.size(1);
    at::Tensor y = at::empty({batch, length, w.size(1)}, gate_up.options());
    at::Tensor grad_y = at::empty_like(y), grad_y_rows = rows(grad_y);
    at::Tensor grad_gate_up = at::empty_like(gate_up), grad_w = at::empty_like(w), grad_canon;
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    linear_backward_x_cpu(grad, w, grad_y_rows);
    canon_swiglu_backward_cpu(gate_up, layer, grad_y, y, grad_gate_up, grad_canon);
    linear_backward_w_cpu(grad, rows(y), grad_w);
    return {grad_gate_up, grad_canon, {}, {}, grad_w};
  }
};

}  // namespace

at::Tensor swiglu_linear(const at::Tensor& gate_up, const CanonLayer& canon, const at::Tensor& w) {
  TORCH_CHECK(gate_up.dim() == 3 && w.dim() == 2 && gate_up.size(2) == 2 * w.size(1),
              "swiglu_linear: gate_up must be [batch, tokens, 2 * ",
              w.dim() == 2 ? w.size(1) : -1,
              "], is ",
              gate_up.sizes());
  if (canon.weight.defined()) check_canon_shapes(gate_up, canon.weight, canon.doc_ids);
  const bool fused = has_cpu_kernel(gate_up) && gate_up.scalar_type() == w.scalar_type() &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return ops::linear(swiglu(canon_layer(gate_up, canon)), w);
  return SwiGluLinear::apply(gate_up.contiguous(),
                             or_empty(canon.weight),
                             canon.options.residual,
                             or_empty(canon.doc_ids),
                             w.contiguous());
}

}  // namespace forge::ops
