#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// An autograd function takes no undefined tensor: an empty one stands for "one document".
at::Tensor documents(const at::Tensor& first) { return first.dim() == 2 ? first : at::Tensor(); }

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
    causal_attention_forward_cpu(read[0], read[1], read[2], documents(first), out, log_sum_exp);
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
                                  documents(saved[3]),
                                  out,
                                  saved[5],
                                  as_operand(grad_outputs[0].contiguous(), saved[0].scalar_type()),
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

at::Tensor first_tokens_of_documents(const at::Tensor& doc_ids, int64_t batch, int64_t length) {
  TORCH_CHECK(doc_ids.dim() == 2 && doc_ids.size(0) == batch && doc_ids.size(1) == length &&
                  doc_ids.scalar_type() == at::kInt,
              "causal_attention: doc_ids must be int32 [",
              batch,
              ", ",
              length,
              "], are ",
              doc_ids.scalar_type(),
              " ",
              doc_ids.sizes());
  if (!doc_ids.is_cpu()) return {};
  const at::Tensor ids = doc_ids.contiguous();
  at::Tensor first = at::empty_like(ids);
  for (int64_t row = 0; row < batch; ++row) {
    const int32_t* id = ids.data_ptr<int32_t>() + row * length;
    int32_t* out = first.data_ptr<int32_t>() + row * length;
    for (int64_t t = 0; t < length; ++t) {
      if (t > 0 && id[t] < id[t - 1]) return {};
      const bool begins = t == 0 || id[t] != id[t - 1];
      out[t] = begins ? static_cast<int32_t>(t) : out[t - 1];
    }
  }
  return first;
}

at::Tensor causal_attention(const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const at::Tensor& doc_ids,
                            std::optional<at::ScalarType> products) {
  check_shapes(q, k, v);
  const at::ScalarType type = products.value_or(q.scalar_type());
  const bool fused = has_cpu_kernel(q) && has_product_kernel(q, type);
  if (!doc_ids.defined()) {
    // The library gives no gradients of an empty batch.
    if (!fused && q.numel() == 0) return causal_attention_reference(q, k, v);
    if (!fused) return torch_compat::scaled_dot_product_attention(q, k, v);
    return CausalAttention::apply(q, k, v, at::empty({0}, at::kInt), static_cast<int64_t>(type));
  }
  const at::Tensor first = first_tokens_of_documents(doc_ids, q.size(0), q.size(1));
  if (!fused || !first.defined()) return causal_attention_reference(q, k, v, doc_ids);
  return CausalAttention::apply(q, k, v, first, static_cast<int64_t>(type));
}

}  // namespace forge::ops
