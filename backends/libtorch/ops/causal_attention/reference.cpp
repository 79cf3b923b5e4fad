#include <cmath>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor causal_attention_reference(const at::Tensor& q,
                                      const at::Tensor& k,
                                      const at::Tensor& v,
                                      const at::Tensor& doc_ids) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const at::Tensor queries = q.transpose(1, 2);
  const at::Tensor keys = k.transpose(1, 2).repeat_interleave(group, 1);
  const at::Tensor values = v.transpose(1, 2).repeat_interleave(group, 1);
  at::Tensor scores = at::matmul(queries, keys.transpose(2, 3)) / std::sqrt(double(q.size(3)));
  at::Tensor hidden = at::ones({length, length}, q.options().dtype(at::kBool)).triu(1);
  if (doc_ids.defined()) {
    const at::Tensor other = doc_ids.unsqueeze(2).ne(doc_ids.unsqueeze(1));  // [B, T, T]
    hidden = hidden.logical_or(other).unsqueeze(1);
  }
  scores = scores.masked_fill(hidden, -INFINITY);
  return at::matmul(at::softmax(scores, -1), values).transpose(1, 2).contiguous();
}

}  // namespace forge::ops
