#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

struct Embedding : public torch::autograd::Function<Embedding> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& ids) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    context->save_for_backward({ids, w});
    at::Tensor y = at::empty({ids.size(0), w.size(1)}, matrix.operand().options());
    embedding_forward_cuda(matrix.operand(), ids, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grad_outputs[0].contiguous();
    at::Tensor grad_w = empty_gradient(saved[1]);
    embedding_backward_cuda(saved[0], grad, grad_w);
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
