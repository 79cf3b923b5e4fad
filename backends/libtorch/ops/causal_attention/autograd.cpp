#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CausalAttention : public torch::autograd::Function<CausalAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v) {
    at::Tensor out = at::empty(q.sizes(), q.options());
    at::Tensor log_sum_exp = at::empty({q.size(0), q.size(2), q.size(1)}, q.options());
    causal_attention_forward_cpu(q, k, v, out, log_sum_exp);
    context->save_for_backward({q, k, v, out, log_sum_exp});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    variable_list grads;
    for (int i = 0; i < 3; ++i) grads.push_back(at::empty(saved[i].sizes(), saved[i].options()));
    causal_attention_backward_cpu(saved[0],
                                  saved[1],
                                  saved[2],
                                  saved[3],
                                  saved[4],
                                  grad_outputs[0].contiguous(),
                                  grads[0],
                                  grads[1],
                                  grads[2]);
    return grads;
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

at::Tensor causal_attention(const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const at::Tensor& doc_ids) {
  check_shapes(q, k, v);
  const bool fused =
      q.is_cpu() && (q.scalar_type() == at::kFloat || q.scalar_type() == at::kDouble);
  if (doc_ids.defined()) return causal_attention_reference(q, k, v, doc_ids);
  if (fused) return CausalAttention::apply(q, k, v);
  return torch_compat::scaled_dot_product_attention(q, k, v);
}

}  // namespace forge::ops
