#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

struct Embedding : public torch::autograd::Function<Embedding> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& ids) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    context->save_for_backward({ids});
    context->saved_data["rows"] = w.size(0);
    context->saved_data["weight_type"] = static_cast<int64_t>(w.scalar_type());
    at::Tensor y = at::empty({ids.size(0), w.size(1)}, matrix.operand().options());
    embedding_forward_cuda(matrix.operand(), ids, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor ids = context->get_saved_variables()[0];
    const at::Tensor grad = grad_outputs[0].contiguous();
    const auto weight_type =
        static_cast<at::ScalarType>(context->saved_data["weight_type"].toInt());
    at::Tensor grad_w = at::empty({context->saved_data["rows"].toInt(), grad.size(1)},
                                  grad.options().dtype(weight_type));
    embedding_backward_cuda(ids, grad, grad_w);
    return {grad_w, {}, {}};
  }
};

}  // namespace

at::Tensor embedding(const WeightMatrix& w, const at::Tensor& ids) {
  if (!has_cuda_kernel(w.operand()) || !is_vector_aligned(w.operand()))
    return at::embedding(w.stored.is_cuda() ? w.differentiable() : w.stored, ids);
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(w.stored.size(1));
  return Embedding::apply(w.stored.contiguous(), or_empty(w.rounded), ids.contiguous().view({-1}))
      .view(shape);
}

}  // namespace forge::ops
