#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CanonConv : public torch::autograd::Function<CanonConv> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            bool residual,
                            bool silu,
                            const at::Tensor& doc_ids) {
    context->save_for_backward({x, w, doc_ids});
    context->saved_data["residual"] = residual;
    context->saved_data["silu"] = silu;
    at::Tensor y = at::empty_like(x);
    const auto run = x.is_cuda() ? canon_conv_forward_cuda : canon_conv_forward_cpu;
    run(x, w, {residual, silu}, or_undefined(doc_ids), y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const CanonConvOptions options{context->saved_data["residual"].toBool(),
                                   context->saved_data["silu"].toBool()};
    at::Tensor grad_x = at::empty_like(saved[0]);
    at::Tensor grad_w = at::empty_like(saved[1]);
    const auto run = saved[0].is_cuda() ? canon_conv_backward_cuda : canon_conv_backward_cpu;
    run(saved[0],
        saved[1],
        options,
        or_undefined(saved[2]),
        grad_outputs[0].contiguous(),
        grad_x,
        grad_w);
    return {grad_x, grad_w, {}, {}, {}};
  }
};

}  // namespace

void check_canon_shapes(const at::Tensor& x, const at::Tensor& w, const at::Tensor& doc_ids) {
  TORCH_CHECK(x.dim() == 3, "canon_conv: x must be [batch, tokens, channels], is ", x.sizes());
  TORCH_CHECK(w.dim() == 3 && w.size(0) == x.size(2) && w.size(1) == 1,
              "canon_conv: w must be [",
              x.size(2),
              ", 1, kernel], is ",
              w.sizes());
  TORCH_CHECK(
      w.size(2) >= 2 && w.size(2) <= 4, "canon_conv: the kernel has 2 to 4 taps, not ", w.size(2));
  TORCH_CHECK(w.scalar_type() == x.scalar_type() || w.scalar_type() == small_weight_type(x),
              "canon_conv: x is ",
              x.scalar_type(),
              " but w is ",
              w.scalar_type());
  if (!doc_ids.defined()) return;
  TORCH_CHECK(doc_ids.dim() == 2 && doc_ids.size(0) == x.size(0) && doc_ids.size(1) == x.size(1) &&
                  doc_ids.scalar_type() == at::kInt,
              "canon_conv: doc_ids must be int32 [",
              x.size(0),
              ", ",
              x.size(1),
              "]");
}

at::Tensor canon_conv(const at::Tensor& x,
                      const at::Tensor& w,
                      const CanonConvOptions& options,
                      const at::Tensor& doc_ids) {
  check_canon_shapes(x, w, doc_ids);
  const bool fused =
      w.scalar_type() == small_weight_type(x) &&
      (has_cpu_kernel(x) || (has_cuda_kernel(x) && has_cuda_packs(x) && !options.silu));
  if (!fused) return canon_conv_reference(x, w, options, doc_ids);
  return CanonConv::apply(
      x.contiguous(), w.contiguous(), options.residual, options.silu, or_empty(doc_ids));
}

at::Tensor canon_layer(const at::Tensor& x, const CanonLayer& layer) {
  return layer.weight.defined() ? canon_conv(x, layer.weight, layer.options, layer.doc_ids) : x;
}

}  // namespace forge::ops
