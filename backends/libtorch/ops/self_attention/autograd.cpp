#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Heads {
  at::Tensor q, k, v;  ///< views [B, T, H or G, D]
};

Heads split(const at::Tensor& qkv, const HeadLayout& layout) {
  const int64_t heads = layout.heads + 2 * layout.kv_heads;
  const at::Tensor all = qkv.view({qkv.size(0), qkv.size(1), heads, layout.head_dim});
  return {all.narrow(2, 0, layout.heads),
          all.narrow(2, layout.heads, layout.kv_heads),
          all.narrow(2, layout.heads + layout.kv_heads, layout.kv_heads)};
}

/// Options of the heads that attention reads: those of qkv with the products' type.
at::TensorOptions options_of(const at::Tensor& qkv, int64_t products) {
  return qkv.options().dtype(static_cast<at::ScalarType>(products));
}

/// With a convolution its input is kept, because its weight's gradient needs it, and what attention
/// reads is made again; without one what attention reads is kept.
struct SelfAttention : public torch::autograd::Function<SelfAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const at::Tensor& canon,
                            bool residual,
                            const at::Tensor& canon_doc_ids,
                            const at::Tensor& cos,
                            const at::Tensor& sin,
                            bool interleaved,
                            int64_t heads,
                            int64_t kv_heads,
                            int64_t head_dim,
                            const at::Tensor& first,
                            int64_t products) {
    const HeadLayout layout{heads, kv_heads, head_dim};
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(canon_doc_ids)};
    at::Tensor prepared = at::empty(qkv.sizes(), options_of(qkv, products));
    prepare_heads_cpu(
        qkv, layer, {or_undefined(cos), or_undefined(sin), interleaved}, layout, prepared);
    const Heads part = split(prepared, layout);
    at::Tensor out = at::empty(part.q.sizes(), qkv.options());
    at::Tensor log_sum_exp = at::empty({qkv.size(0), heads, qkv.size(1)}, qkv.options());
    causal_attention_forward_cpu(part.q, part.k, part.v, or_undefined(first), out, log_sum_exp);
    context->save_for_backward({layer.weight.defined() ? qkv : prepared,
                                canon,
                                canon_doc_ids,
                                cos,
                                sin,
                                first,
                                out,
                                log_sum_exp});
    context->saved_data["residual"] = residual;
    context->saved_data["interleaved"] = interleaved;
    context->saved_data["kv_heads"] = kv_heads;
    context->saved_data["products"] = products;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& out = saved[6];
    const HeadLayout layout{out.size(2), context->saved_data["kv_heads"].toInt(), out.size(3)};
    const CanonLayer layer{or_undefined(saved[1]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[2])};
    const RotaryTable rotary{or_undefined(saved[3]),
                             or_undefined(saved[4]),
                             context->saved_data["interleaved"].toBool()};
    at::Tensor prepared = saved[0];
    if (layer.weight.defined()) {
      const int64_t products = context->saved_data["products"].toInt();
      prepared = at::empty(saved[0].sizes(), options_of(saved[0], products));
      prepare_heads_cpu(saved[0], layer, rotary, layout, prepared);
    }
    at::Tensor grad = at::empty(prepared.sizes(), out.options());
    const Heads part = split(prepared, layout);
    Heads part_grad = split(grad, layout);
    causal_attention_backward_cpu(part.q,
                                  part.k,
                                  part.v,
                                  or_undefined(saved[5]),
                                  out,
                                  saved[7],
                                  as_operand(grad_outputs[0].contiguous(), prepared.scalar_type()),
                                  part_grad.q,
                                  part_grad.k,
                                  part_grad.v);
    turn_heads_back_cpu(rotary, layout, grad);
    at::Tensor grad_qkv = grad, grad_canon;
    if (layer.weight.defined()) {
      // What attention read is no longer needed.
      grad_qkv = prepared.scalar_type() == grad.scalar_type() ? prepared : at::empty_like(grad);
      grad_canon = at::empty_like(layer.weight);
      canon_conv_backward_cpu(
          saved[0], layer.weight, layer.options, layer.doc_ids, grad, grad_qkv, grad_canon);
    }
    return {grad_qkv, grad_canon, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  }
};

/// The same on a GPU, where the library's attention keeps a state of its own and heads may be
/// normalised: the norms' weights need their input too.
struct SelfAttentionCuda : public torch::autograd::Function<SelfAttentionCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const at::Tensor& canon,
                            bool residual,
                            const at::Tensor& canon_doc_ids,
                            const at::Tensor& cos,
                            const at::Tensor& sin,
                            bool interleaved,
                            const at::Tensor& q_norm,
                            const at::Tensor& k_norm,
                            double eps,
                            bool round_before_weight,
                            int64_t heads,
                            int64_t kv_heads,
                            int64_t head_dim,
                            const at::Tensor& starts) {
    const Source source{{or_undefined(canon), {residual, false}, or_undefined(canon_doc_ids)},
                        {or_undefined(cos), or_undefined(sin), interleaved},
                        {heads, kv_heads, head_dim},
                        {or_undefined(q_norm), or_undefined(k_norm), {eps, round_before_weight}}};
    const at::Tensor prepared = prepare(qkv, source);
    const Heads part = split(prepared, source.layout);
    const LibraryAttention attention =
        library_attention(part.q, part.k, part.v, or_undefined(starts));
    const bool kept = !source.needs_input() || keeps_prepared_heads_cuda(prepared);
    context->save_for_backward({source.needs_input() ? qkv : prepared,
                                canon,
                                canon_doc_ids,
                                cos,
                                sin,
                                q_norm,
                                k_norm,
                                starts,
                                attention.out,
                                attention.log_sum_exp,
                                attention.seed,
                                attention.offset,
                                kept ? prepared : at::Tensor()});
    context->saved_data["residual"] = residual;
    context->saved_data["interleaved"] = interleaved;
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    context->saved_data["heads"] = heads;
    context->saved_data["kv_heads"] = kv_heads;
    return attention.out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const LibraryAttention attention{saved[8], saved[9], saved[10], saved[11]};
    const Source source{
        {or_undefined(saved[1]), {data["residual"].toBool(), false}, or_undefined(saved[2])},
        {or_undefined(saved[3]), or_undefined(saved[4]), data["interleaved"].toBool()},
        {data["heads"].toInt(), data["kv_heads"].toInt(), attention.out.size(3)},
        {or_undefined(saved[5]),
         or_undefined(saved[6]),
         {data["eps"].toDouble(), data["round_before_weight"].toBool()}}};
    const at::Tensor prepared = saved[12].defined() ? saved[12] : prepare(saved[0], source);
    const Heads part = split(prepared, source.layout);
    const HeadGradients of_heads = library_attention_backward(
        part.q, part.k, part.v, or_undefined(saved[7]), attention, grad_outputs[0].contiguous());
    const SourceGradients grads = prepare_heads_backward_cuda(saved[0],
                                                              source.canon,
                                                              source.rotary,
                                                              source.layout,
                                                              source.norms,
                                                              {of_heads.q, of_heads.k, of_heads.v});
    return {grads.qkv,
            grads.canon,
            {},
            {},
            {},
            {},
            {},
            grads.q_norm,
            grads.k_norm,
            {},
            {},
            {},
            {},
            {},
            {}};
  }

 private:
  /// What makes of a joint projection what attention reads.
  struct Source {
    CanonLayer canon;
    RotaryTable rotary;
    HeadLayout layout;
    HeadNorms norms;
    bool needs_input() const { return canon.weight.defined() || norms.defined(); }
  };

  static at::Tensor prepare(const at::Tensor& qkv, const Source& source) {
    if (!source.needs_input() && !source.rotary.cos.defined()) return qkv;
    at::Tensor prepared = at::empty_like(qkv);
    prepare_heads_cuda(qkv, source.canon, source.rotary, source.layout, source.norms, prepared);
    return prepared;
  }
};

/// The same by operations that stand alone.
at::Tensor composed(const at::Tensor& qkv,
                    const CanonLayer& canon,
                    const RotaryTable& table,
                    const HeadLayout& layout,
                    const Documents& documents,
                    std::optional<at::ScalarType> products,
                    const HeadNorms& norms) {
  const Heads part = split(canon_layer(qkv, canon), layout);
  const auto prepared = [&](at::Tensor x, const at::Tensor& norm) {
    if (norm.defined()) x = rms_norm(x, norm, norms.options);
    return table.cos.defined() ? rotary(x, table) : x;
  };
  const at::Tensor q = prepared(part.q, norms.q), k = prepared(part.k, norms.k);
  return causal_attention(q, k, part.v, documents, products).flatten(2);
}

void check(const at::Tensor& qkv, const RotaryTable& rotary, const HeadLayout& layout) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) == layout.width() && layout.kv_heads > 0 &&
                  layout.heads % layout.kv_heads == 0,
              "self_attention: qkv must be [batch, tokens, (",
              layout.heads,
              " + 2 * ",
              layout.kv_heads,
              ") * ",
              layout.head_dim,
              "], is ",
              qkv.sizes());
  TORCH_CHECK(!rotary.cos.defined() ||
                  (rotary.cos.size(0) >= qkv.size(1) && 2 * rotary.cos.size(1) <= layout.head_dim),
              "self_attention: the rotary table is ",
              rotary.cos.sizes(),
              " for ",
              qkv.size(1),
              " tokens and heads of ",
              layout.head_dim);
}

}  // namespace

at::Tensor self_attention(const at::Tensor& qkv,
                          const CanonLayer& canon,
                          const RotaryTable& rotary,
                          const HeadLayout& layout,
                          const Documents& documents,
                          std::optional<at::ScalarType> products,
                          const HeadNorms& norms) {
  check(qkv, rotary, layout);
  check_documents(documents, qkv.size(0), qkv.size(1));
  if (canon.weight.defined()) check_canon_shapes(qkv, canon.weight, canon.doc_ids);
  const at::Tensor joint = qkv.contiguous();
  const bool plain = !(canon.weight.defined() && canon.options.silu);
  if (plain && has_cuda_kernel(joint) && has_cuda_packs(joint) &&
      can_prepare_heads_cuda(rotary, layout, norms)) {
    const Heads part = split(joint, layout);
    if (has_library_attention(part.q, part.k, documents)) {
      return SelfAttentionCuda::apply(joint,
                                      or_empty(canon.weight),
                                      canon.options.residual,
                                      or_empty(canon.doc_ids),
                                      or_empty(rotary.cos),
                                      or_empty(rotary.sin),
                                      rotary.interleaved,
                                      or_empty(norms.q),
                                      or_empty(norms.k),
                                      norms.options.eps,
                                      norms.options.round_before_weight,
                                      layout.heads,
                                      layout.kv_heads,
                                      layout.head_dim,
                                      or_empty(documents.starts))
          .flatten(2);
    }
  }
  const at::ScalarType type = products.value_or(qkv.scalar_type());
  const bool fused = plain && has_cpu_kernel(qkv) && has_product_kernel(qkv, type) &&
                     (!documents.defined() || documents.first.defined()) && !norms.defined() &&
                     (!rotary.cos.defined() || rotary.cos.scalar_type() == qkv.scalar_type());
  if (!fused) return composed(joint, canon, rotary, layout, documents, products, norms);
  return SelfAttention::apply(joint,
                              or_empty(canon.weight),
                              canon.options.residual,
                              or_empty(canon.doc_ids),
                              or_empty(rotary.cos),
                              or_empty(rotary.sin),
                              rotary.interleaved,
                              layout.heads,
                              layout.kv_heads,
                              layout.head_dim,
                              or_empty(documents.first),
                              static_cast<int64_t>(type))
      .flatten(2);
}

}  // namespace forge::ops
