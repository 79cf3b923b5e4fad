#include "backends/libtorch/ops/causal_attention/causal_attention.h"

#include <array>
#include <cmath>

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// From here on the deterministic backward pass of flash attention has a block for each sequence on
// every GPU, so that its sums do not depend on how many empty ones there are.
constexpr int64_t fewest_sequences = 256;

/// Calls begins(row, t) for the first token of every document. Returns whether the numbers rise in
/// every row.
template <class Begins>
bool for_each_document(const int32_t* ids, int64_t rows, int64_t length, const Begins& begins) {
  for (int64_t row = 0; row < rows; ++row, ids += length) {
    for (int64_t t = 0; t < length; ++t) {
      if (t > 0 && ids[t] < ids[t - 1]) return false;
      if (t == 0 || ids[t] != ids[t - 1]) begins(row, t);
    }
  }
  return true;
}

/// For each token the first one of its document; undefined where a row's numbers do not rise.
at::Tensor first_tokens(const at::Tensor& ids) {
  const int64_t rows = ids.size(0), length = ids.size(1);
  at::Tensor first = at::zeros_like(ids);
  int32_t* out = first.data_ptr<int32_t>();
  const bool rises =
      for_each_document(ids.data_ptr<int32_t>(), rows, length, [&](int64_t row, int64_t t) {
        out[row * length + t] = static_cast<int32_t>(t);
      });
  if (!rises) return {};
  for (int64_t row = 0; row < rows; ++row, out += length) {
    for (int64_t t = 1; t < length; ++t) out[t] = std::max(out[t], out[t - 1]);
  }
  return first;
}

}  // namespace

std::vector<int32_t> document_starts(const int32_t* doc_ids,
                                     int64_t rows,
                                     int64_t length,
                                     int64_t sequences) {
  std::vector<int32_t> starts;
  const bool rises = for_each_document(doc_ids, rows, length, [&](int64_t row, int64_t t) {
    starts.push_back(static_cast<int32_t>(row * length + t));
  });
  if (!rises) return {};
  const int64_t needed = std::max(static_cast<int64_t>(starts.size()), sequences);
  int64_t count = fewest_sequences;
  while (count < needed) count *= 2;
  starts.resize(static_cast<size_t>(count + 1), static_cast<int32_t>(rows * length));
  return starts;
}

Documents divide_documents(const at::Tensor& doc_ids) {
  if (!doc_ids.defined()) return {};
  TORCH_CHECK(doc_ids.dim() == 2 && doc_ids.scalar_type() == at::kInt,
              "doc_ids must be int32 [batch, length], are ",
              doc_ids.scalar_type(),
              " ",
              doc_ids.sizes());
  const at::Tensor ids = doc_ids.contiguous();
  if (ids.is_cpu()) return {ids, first_tokens(ids), {}};
  const at::Tensor on_host = ids.cpu();
  const std::vector<int32_t> starts =
      document_starts(on_host.data_ptr<int32_t>(), ids.size(0), ids.size(1));
  if (starts.empty()) return {ids, {}, {}};
  return {ids, {}, at::tensor(starts, at::kInt).to(ids.device())};
}

Documents within_window(const Documents& documents, int64_t window, const at::Tensor& x) {
  const int64_t rows = x.size(0), length = x.size(1);
  TORCH_CHECK(window > 0, "within_window: the window must be at least 1, is ", window);
  if (window >= length) return documents;
  Documents within{documents.ids, {}, documents.starts, window};
  const at::TensorOptions int32s = at::TensorOptions(x.device()).dtype(at::kInt);
  const bool rises = !documents.ids.defined() || documents.first.defined();
  if (x.is_cpu() && rises) {
    const at::Tensor earliest =
        at::arange(1 - window, length - window + 1, int32s).clamp_min(0).expand({rows, length});
    within.first =
        documents.first.defined() ? at::maximum(documents.first, earliest) : earliest.contiguous();
  }
  if (!x.is_cpu() && !documents.ids.defined()) {
    // Each row is a document, with empty ones behind the last as in document_starts().
    const int64_t sequences = std::max(rows, fewest_sequences);
    within.starts = at::arange(sequences + 1, int32s).clamp_max(rows).mul(length);
  }
  return within;
}

namespace {

/// bool [T, T]: the keys that a query of a row of T tokens may not see, later ones and those before
/// the window.
at::Tensor hidden_tokens(int64_t length, int64_t window, const at::Tensor& like) {
  const at::Tensor all = at::ones({length, length}, like.options().dtype(at::kBool));
  return window > 0 ? all.triu(1).logical_or(all.tril(-window)) : all.triu(1);
}

}  // namespace

at::Tensor causal_attention_reference(const at::Tensor& q,
                                      const at::Tensor& k,
                                      const at::Tensor& v,
                                      const at::Tensor& doc_ids,
                                      int64_t window) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const at::Tensor queries = q.transpose(1, 2);
  const at::Tensor keys = k.transpose(1, 2).repeat_interleave(group, 1);
  const at::Tensor values = v.transpose(1, 2).repeat_interleave(group, 1);
  at::Tensor scores = at::matmul(queries, keys.transpose(2, 3)) / std::sqrt(double(q.size(3)));
  at::Tensor hidden = hidden_tokens(length, window, q);
  if (doc_ids.defined()) {
    const at::Tensor other = doc_ids.unsqueeze(2).ne(doc_ids.unsqueeze(1));  // [B, T, T]
    hidden = hidden.logical_or(other).unsqueeze(1);
  }
  scores = scores.masked_fill(hidden, -INFINITY);
  return at::matmul(at::softmax(scores, -1), values).transpose(1, 2).contiguous();
}

namespace {

struct CausalAttention : public torch::autograd::Function<CausalAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const at::Tensor& first,
                            int64_t products) {
    const auto type = static_cast<at::ScalarType>(products);
    const Heads heads{as_operand(q, type), as_operand(k, type), as_operand(v, type)};
    at::Tensor out = at::empty(q.sizes(), q.options());
    at::Tensor log_sum_exp = at::empty({q.size(0), q.size(2), q.size(1)}, q.options());
    causal_attention_forward_cpu(heads, or_undefined(first), out, log_sum_exp);
    context->save_for_backward({heads.q, heads.k, heads.v, first, out, log_sum_exp});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& out = saved[4];
    const auto like = [&](const at::Tensor& x) { return at::empty(x.sizes(), out.options()); };
    Heads grad{like(saved[0]), like(saved[1]), like(saved[2])};
    causal_attention_backward_cpu({saved[0], saved[1], saved[2]},
                                  or_undefined(saved[3]),
                                  out,
                                  saved[5],
                                  as_operand(grad_outputs[0].contiguous(), saved[0].scalar_type()),
                                  grad);
    return {grad.q, grad.k, grad.v, {}, {}};
  }
};

/// Within documents on a GPU, where the library's attention keeps a state of its own.
struct CausalAttentionCuda : public torch::autograd::Function<CausalAttentionCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const Documents& documents) {
    const LibraryAttention attention = library_attention({q, k, v}, documents);
    context->save_for_backward(
        {q, k, v, attention.out, attention.log_sum_exp, attention.seed, attention.offset});
    keep_arguments(context, documents);
    return attention.out;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const LibraryAttention attention{saved[3], saved[4], saved[5], saved[6]};
    const Heads grad = library_attention_backward({saved[0], saved[1], saved[2]},
                                                  kept_arguments<Documents>(context),
                                                  attention,
                                                  grad_outputs[0].contiguous());
    return {grad.q, grad.k, grad.v, {}};
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
  const std::array<int64_t, 2> shape = {batch, length};
  TORCH_CHECK(!documents.ids.defined() || documents.ids.sizes() == at::IntArrayRef(shape),
              "attention: doc_ids must be int32 ",
              at::IntArrayRef(shape),
              ", are ",
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
  if (divided && has_cuda_kernel(q) && has_library_attention({q, k, v}, documents))
    return CausalAttentionCuda::apply(q, k, v, documents);
  if (q.is_cuda() && !documents.ids.defined() && q.numel() > 0) {
    const at::Tensor hidden = hidden_tokens(q.size(1), documents.window, q);
    return torch_compat::scaled_dot_product_attention(q, k, v, hidden, documents.window);
  }
  return causal_attention_reference(q, k, v, documents.ids, documents.window);
}

}  // namespace forge::ops
