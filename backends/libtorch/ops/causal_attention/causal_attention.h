#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "backends/libtorch/ops/causal_attention/documents.h"

namespace forge::ops {

/// Causal softmax attention (Vaswani et al. 2017), scores scaled by 1/sqrt(D):
///   q        [B, T, H, D], k and v [B, T, G, D], G divides H; query head h reads key-value head
///            h / (H/G); last dimension contiguous, any stride elsewhere
///   documents of [B, T], or none; a token attends only to tokens of its own
///   products what the CPU's kernels round the operands of matrix products to, if another type than
///            q's: bfloat16 beside float32
/// Returns [B, T, H, D], contiguous. Differentiable in q, k, v.
at::Tensor causal_attention(const at::Tensor& q,
                            const at::Tensor& k,
                            const at::Tensor& v,
                            const Documents& documents = {},
                            std::optional<at::ScalarType> products = {});

/// The same by plain Torch operations on the whole [B, H, T, T] score tensor, on any device.
at::Tensor causal_attention_reference(const at::Tensor& q,
                                      const at::Tensor& k,
                                      const at::Tensor& v,
                                      const at::Tensor& doc_ids = {});

/// Throws c10::Error where documents are not those of [batch, length].
void check_documents(const Documents& documents, int64_t batch, int64_t length);

/// Blocked over queries, the upper triangle and earlier documents skipped, no score tensor kept.
/// `first` as in Documents, or undefined. `out`
/// [B, T, H, D] and `log_sum_exp` [B, H, T] are written, in float32 where q, k and v are bfloat16.
void causal_attention_forward_cpu(const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const at::Tensor& first,
                                  at::Tensor& out,
                                  at::Tensor& log_sum_exp);

/// Gradients of sum(out * grad_out), in the type of `out`; grad_out has q's. Scores are computed
/// again from q, k and log_sum_exp.
void causal_attention_backward_cpu(const at::Tensor& q,
                                   const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& first,
                                   const at::Tensor& out,
                                   const at::Tensor& log_sum_exp,
                                   const at::Tensor& grad_out,
                                   at::Tensor& grad_q,
                                   at::Tensor& grad_k,
                                   at::Tensor& grad_v);

/// What the backward pass of the library's attention needs besides its inputs.
struct LibraryAttention {
  at::Tensor out;          ///< [B, T, H, D], contiguous
  at::Tensor log_sum_exp;  ///< in the library's own shape
  at::Tensor seed, offset;
};

/// Whether the GPU's library has a kernel for such heads and documents.
bool has_library_attention(const at::Tensor& q, const at::Tensor& k, const Documents& documents);

/// Causal attention of q [B, T, H, D], k and v [B, T, G, D], of any strides but the last, by the
/// fastest of the GPU library's kernels: cuDNN's, or where results must be the same bits each time
/// (at::globalContext().deterministicAlgorithms()) or there are documents flash attention. `starts`
/// as in Documents, or undefined.
LibraryAttention library_attention(const at::Tensor& q,
                                   const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& starts);

struct HeadGradients {
  at::Tensor q, k, v;  ///< contiguous
};
HeadGradients library_attention_backward(const at::Tensor& q,
                                         const at::Tensor& k,
                                         const at::Tensor& v,
                                         const at::Tensor& starts,
                                         const LibraryAttention& saved,
                                         const at::Tensor& grad_out);

}  // namespace forge::ops
