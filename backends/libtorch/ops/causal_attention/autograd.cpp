#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CausalAttention : public torch::autograd::Function<CausalAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const at::Tensor& first,
                            int64_t products) {
    const auto type = static_cast<at::ScalarType>(products);
    const variable_list read = {as_operand(q, type), as_operand(k, type), as_operand(v, type)};
    at::Tensor out = at::empty(q.sizes(), q.options());
    at::Tensor log_sum_exp = at::empty({q.size(0), q.size(2), q.size(1)}, q.options());
    causal_attention_forward_cpu(read[0], read[1], read[2], or_undefined(first), out, log_sum_exp);
    context->save_for_backward({read[0], read[1], read[2], first, out, log_sum_exp});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& out = saved[4];
    variable_list grads(5);
    for (int i = 0; i < 3; ++i) grads[i] = at::empty(saved[i].sizes(), out.options());
    causal_attention_backward_cpu(saved[0],
                                  saved[1],
                                  saved[2],
                                  or_undefined(saved[3]),
                                  out,
                                  saved[5],
                                  as_operand(grad_outputs[0].contiguous(), saved[0].scalar_type()),
                                  grads[0],
                                  grads[1],
                                  grads[2]);
    return grads;
  }
};

/// Within documents on a GPU, where the library's attention keeps a state of its own.
struct CausalAttentionCuda : public torch::autograd::Function<CausalAttentionCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const at::Tensor& starts) {
    const LibraryAttention attention = library_attention(q, k, v, starts);
    context->save_for_backward(
        {q, k, v, starts, attention.out, attention.log_sum_exp, attention.seed, attention.offset});
    return attention.out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const LibraryAttention attention{saved[4], saved[5], saved[6], saved[7]};
    const HeadGradients grads = library_attention_backward(
        saved[0], saved[1], saved[2], saved[3], attention, grad_outputs[0].contiguous());
    return {grads.q, grads.k, grads.v, {}};
  }
};

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK(
      q.dim() == 4, "causal_attention: q must be [batch, tokens, heads, head_dim], is ", q.sizes());
  TORCH_CHECK(k.sizes() == v.sizes() && k.dim() == 4 && k.size(0) == q.size(0) &&
                  k.size(1) == q.size(1) && k.size(3) == q.size(3) && q.size(2) % k.size(2) == 0,
              "causal_attention: k and v must be [",
              q.size(0),
              ", ",
              q.size(1),
              ", a divisor of ",
              q.size(2),
              ", ",
              q.size(3),
              "], are ",
              k.sizes(),
              " and ",
              v.sizes());
}

}  // namespace

void check_documents(const Documents& documents, int64_t batch, int64_t length) {
  TORCH_CHECK(!documents.defined() || documents.ids.sizes() == at::IntArrayRef({batch, length}),
              "attention: doc_ids must be int32 [",
              batch,
              ", ",
              length,
              "], are ",
              documents.ids.sizes());
}

at::Tensor causal_attention(const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const Documents& documents,
                            std::optional<at::ScalarType> products) {
  check_shapes(q, k, v);
  check_documents(documents, q.size(0), q.size(1));
  const at::ScalarType type = products.value_or(q.scalar_type());
  const bool divided = documents.defined();
  if (has_cpu_kernel(q) && has_product_kernel(q, type) && (!divided || documents.first.defined()))
    return CausalAttention::apply(q, k, v, or_empty(documents.first), static_cast<int64_t>(type));
  // The library gives no gradients of an empty batch.
  if (!divided && q.numel() > 0) return torch_compat::scaled_dot_product_attention(q, k, v);
  if (divided && has_cuda_kernel(q) && has_library_attention(q, k, documents))
    return CausalAttentionCuda::apply(q, k, v, documents.starts);
  return causal_attention_reference(q, k, v, documents.ids);
}

}  // namespace forge::ops
