#include "backends/libtorch/ops/self_attention/self_attention.h"

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor self_attention_reference(const at::Tensor& qkv,
                                    const CanonRope& rope,
                                    const at::Tensor& doc_ids,
                                    int64_t window) {
  const HeadLayout& layout = rope.layout;
  const at::Tensor all = canon_layer_reference(qkv, rope.canon).unflatten(2, {-1, layout.head_dim});
  const auto rotated = [&](at::Tensor heads, const at::Tensor& norm) {
    if (norm.defined()) heads = rms_norm_reference(heads, norm, rope.norms.options);
    return rope.rotary.cos.defined() ? rotary_reference(heads, rope.rotary) : heads;
  };
  const at::Tensor q = rotated(all.narrow(2, 0, layout.heads), rope.norms.q);
  const at::Tensor k = rotated(all.narrow(2, layout.heads, layout.kv_heads), rope.norms.k);
  const at::Tensor v = all.narrow(2, layout.heads + layout.kv_heads, layout.kv_heads);
  return causal_attention_reference(q, k, v, doc_ids, window).flatten(2);
}

namespace {

/// Views of a joint projection.
Heads split(const at::Tensor& qkv, const HeadLayout& layout) {
  const int64_t heads = layout.heads + 2 * layout.kv_heads;
  const at::Tensor all = qkv.view({qkv.size(0), qkv.size(1), heads, layout.head_dim});
  return {all.narrow(2, 0, layout.heads),
          all.narrow(2, layout.heads, layout.kv_heads),
          all.narrow(2, layout.heads + layout.kv_heads, layout.kv_heads)};
}

/// The weights that autograd tracks are arguments of their own; their gradients are returned.
struct SelfAttentionArguments {
  CanonRope rope;
  Documents documents;
  at::ScalarType products;  ///< on a CPU: the type of the heads that attention reads
};

/// With a convolution its input is kept, because its weight's gradient needs it, and the heads that
/// attention reads are computed again; without one the heads are kept.
struct SelfAttention : public torch::autograd::Function<SelfAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const at::Tensor&,  // the convolution's weight
                            const SelfAttentionArguments& arguments) {
    const at::Tensor heads = rotated_heads(qkv, arguments);
    const Heads part = split(heads, arguments.rope.layout);
    at::Tensor out = at::empty(part.q.sizes(), qkv.options());
    at::Tensor log_sum_exp = at::empty({out.size(0), out.size(2), out.size(1)}, qkv.options());
    causal_attention_forward_cpu(part, arguments.documents.first, out, log_sum_exp);
    const bool recomputes = arguments.rope.canon.weight.defined();
    context->save_for_backward({recomputes ? qkv : heads, out, log_sum_exp});
    keep_arguments(context, arguments);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto arguments = kept_arguments<SelfAttentionArguments>(context);
    const auto& [layer, rotary, layout, norms] = arguments.rope;
    const at::Tensor& out = saved[1];
    const at::Tensor heads = layer.weight.defined() ? rotated_heads(saved[0], arguments) : saved[0];
    at::Tensor grad = at::empty(heads.sizes(), out.options());
    const Heads part = split(heads, layout);
    Heads part_grad = split(grad, layout);
    causal_attention_backward_cpu(part,
                                  arguments.documents.first,
                                  out,
                                  saved[2],
                                  as_operand(grad_outputs[0].contiguous(), heads.scalar_type()),
                                  part_grad);
    rope_backward_cpu(rotary, layout, grad);
    at::Tensor grad_qkv = grad, grad_canon;
    if (layer.weight.defined()) {
      // The heads are no longer needed.
      grad_qkv = heads.scalar_type() == grad.scalar_type() ? heads : at::empty_like(grad);
      grad_canon = at::empty_like(layer.weight);
      canon_conv_backward_cpu(saved[0], layer, grad, grad_qkv, grad_canon);
    }
    return {grad_qkv, grad_canon, {}};
  }

 private:
  static at::Tensor rotated_heads(const at::Tensor& qkv, const SelfAttentionArguments& arguments) {
    at::Tensor heads = at::empty(qkv.sizes(), qkv.options().dtype(arguments.products));
    canon_rope_forward_cpu(qkv, arguments.rope, heads);
    return heads;
  }
};

/// The same on a GPU, where the library's attention keeps a state of its own and heads may be
/// normalised: the norms' weights need their input too.
struct SelfAttentionCuda : public torch::autograd::Function<SelfAttentionCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const at::Tensor&,  // the weights of convolution and norms
                            const at::Tensor&,
                            const at::Tensor&,
                            const SelfAttentionArguments& arguments) {
    const CanonRope& rope = arguments.rope;
    const at::Tensor heads = rotated_heads(qkv, rope);
    const LibraryAttention attention =
        library_attention(split(heads, rope.layout), arguments.documents);
    const bool kept = !needs_input(rope) || keeps_heads_cuda(heads);
    context->save_for_backward({needs_input(rope) ? qkv : heads,
                                kept ? heads : at::Tensor(),
                                attention.out,
                                attention.log_sum_exp,
                                attention.seed,
                                attention.offset});
    keep_arguments(context, arguments);
    return attention.out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto arguments = kept_arguments<SelfAttentionArguments>(context);
    const CanonRope& rope = arguments.rope;
    const LibraryAttention attention{saved[2], saved[3], saved[4], saved[5]};
    const at::Tensor heads = saved[1].defined() ? saved[1] : rotated_heads(saved[0], rope);
    const Heads grad_heads = library_attention_backward(
        split(heads, rope.layout), arguments.documents, attention, grad_outputs[0].contiguous());
    const CanonRopeGradients grads = canon_rope_backward_cuda(saved[0], rope, grad_heads);
    return {grads.qkv, grads.canon, grads.q_norm, grads.k_norm, {}};
  }

 private:
  static bool needs_input(const CanonRope& rope) {
    return rope.canon.weight.defined() || rope.norms.defined();
  }

  static at::Tensor rotated_heads(const at::Tensor& qkv, const CanonRope& rope) {
    if (!needs_input(rope) && !rope.rotary.cos.defined()) return qkv;
    at::Tensor heads = at::empty_like(qkv);
    canon_rope_forward_cuda(qkv, rope, heads);
    return heads;
  }
};

/// The same by operations that stand alone.
at::Tensor composed(const at::Tensor& qkv,
                    const CanonRope& rope,
                    const Documents& documents,
                    std::optional<at::ScalarType> products) {
  const Heads part = split(canon_layer(qkv, rope.canon), rope.layout);
  const auto rotated = [&](at::Tensor x, const at::Tensor& norm) {
    if (norm.defined()) x = rms_norm(x, norm, rope.norms.options);
    return rope.rotary.cos.defined() ? rotary(x, rope.rotary) : x;
  };
  const at::Tensor q = rotated(part.q, rope.norms.q), k = rotated(part.k, rope.norms.k);
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
                          const CanonRope& given,
                          const Documents& documents,
                          std::optional<at::ScalarType> products) {
  const auto& [canon, rotary, layout, norms] = given;
  check(qkv, rotary, layout);
  check_documents(documents, qkv.size(0), qkv.size(1));
  if (canon.weight.defined()) check_canon_shapes(qkv, canon.weight, canon.doc_ids);
  const at::Tensor joint = whole_vectors(qkv);
  const CanonRope rope{contiguous(canon),
                       {contiguous(rotary.cos), contiguous(rotary.sin), rotary.interleaved},
                       layout,
                       {contiguous(norms.q), contiguous(norms.k), norms.options}};
  const Documents kept{
      {}, contiguous(documents.first), contiguous(documents.starts), documents.window};
  const at::ScalarType type = products.value_or(qkv.scalar_type());
  const bool plain = !(canon.weight.defined() && canon.options.silu);
  if (plain && has_cuda_kernel(joint) && is_vector_aligned(joint) && has_canon_rope_cuda(rope) &&
      has_library_attention(split(joint, layout), documents)) {
    return SelfAttentionCuda::apply(joint,
                                    or_empty(rope.canon.weight),
                                    or_empty(rope.norms.q),
                                    or_empty(rope.norms.k),
                                    SelfAttentionArguments{rope, kept, type})
        .flatten(2);
  }
  const bool fused = plain && has_cpu_kernel(qkv) && has_product_kernel(qkv, type) &&
                     (!documents.defined() || documents.first.defined()) && !norms.defined() &&
                     (!rotary.cos.defined() || rotary.cos.scalar_type() == qkv.scalar_type());
  if (!fused) return composed(joint, rope, documents, products);
  return SelfAttention::apply(
             joint, or_empty(rope.canon.weight), SelfAttentionArguments{rope, kept, type})
      .flatten(2);
}

}  // namespace forge::ops
