#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor self_attention_reference(const at::Tensor& qkv,
                                    const CanonLayer& canon,
                                    const RotaryTable& rotary,
                                    const HeadLayout& layout,
                                    const at::Tensor& doc_ids,
                                    const HeadNorms& norms) {
  const at::Tensor all = canon_layer_reference(qkv, canon).unflatten(2, {-1, layout.head_dim});
  const auto prepared = [&](at::Tensor heads, const at::Tensor& norm) {
    if (norm.defined()) heads = rms_norm_reference(heads, norm, norms.options);
    return rotary.cos.defined() ? rotary_reference(heads, rotary) : heads;
  };
  const at::Tensor q = prepared(all.narrow(2, 0, layout.heads), norms.q);
  const at::Tensor k = prepared(all.narrow(2, layout.heads, layout.kv_heads), norms.k);
  const at::Tensor v = all.narrow(2, layout.heads + layout.kv_heads, layout.kv_heads);
  return causal_attention_reference(q, k, v, doc_ids).flatten(2);
}

}  // namespace forge::ops
