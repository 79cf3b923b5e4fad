#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// The heads of queries [B, T, H, D], and of keys and values [B, T, G, D], or their gradients.
struct Heads {
  at::Tensor q, k, v;
};

/// How the rows of a batch [B, T] are divided into documents: found once, read by every layer.
/// `first` and `starts` are what attention's kernels read. They are undefined where a row's numbers
/// do not rise, so that a document need not lie in one piece.
struct Documents {
  at::Tensor ids;      ///< int32 [B, T]; undefined: each row is one document
  at::Tensor first;    ///< on a CPU int32 [B, T], for each token the first one that it sees
  at::Tensor starts;   ///< on a GPU int32 [N + 1], see document_starts()
  int64_t window = 0;  ///< tokens that a token sees at most, itself included; 0: no limit

  /// Whether a token may not see all earlier ones.
  bool defined() const { return ids.defined() || window > 0; }
};

/// The division of doc_ids, undefined or int32 [B, T]. Waits for the GPU where they lie there.
/// Throws c10::Error where they are something else.
Documents divide_documents(const at::Tensor& doc_ids);

/// The same documents for x [B, T, …], of which a token sees itself and the window - 1 tokens
/// before it at most. A window of T or more is none.
Documents within_window(const Documents& documents, int64_t window, const at::Tensor& x);

/// The tokens of a batch at which documents begin, and behind the last one's so many times
/// rows * length that there are N + 1 numbers: N is a power of two, at least 256, and not below
/// `sequences`. Empty where a row's numbers do not rise.
///
/// A recorded step keeps N, while batches differ, so N is more than there are documents. What
/// stands behind them are empty sequences to flash attention's kernels. Each takes the start of a
/// few blocks of threads that end at once (heads * T / 64 or so, well below a microsecond
/// together), and memory for 128 tokens' queries in float32 in the backward pass; one for every
/// token would cost more than attention itself.
std::vector<int32_t> document_starts(const int32_t* doc_ids,
                                     int64_t rows,
                                     int64_t length,
                                     int64_t sequences = 0);

/// Causal softmax attention (Vaswani et al. 2017), scores scaled by 1/sqrt(D):
///   q        [B, T, H, D], k and v [B, T, G, D], G divides H; query head h reads key-value head
///            h / (H/G); last dimension contiguous, any stride elsewhere
///   documents of [B, T], or none; a token attends only to tokens of its own, within the window
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
                                      const at::Tensor& doc_ids = {},
                                      int64_t window = 0);

/// Throws c10::Error where documents are not those of [batch, length].
void check_documents(const Documents& documents, int64_t batch, int64_t length);

/// Blocked over queries, the upper triangle and earlier documents skipped, no score tensor kept.
/// `first` as in Documents, or undefined. `out` [B, T, H, D] and `log_sum_exp` [B, H, T] are
/// written, in float32 where the heads are bfloat16.
void causal_attention_forward_cpu(const Heads& heads,
                                  const at::Tensor& first,
                                  at::Tensor& out,
                                  at::Tensor& log_sum_exp);

/// Gradients of sum(out * grad_out), in the type of `out`; grad_out has q's. Scores are computed
/// again from q, k and log_sum_exp.
void causal_attention_backward_cpu(const Heads& heads,
                                   const at::Tensor& first,
                                   const at::Tensor& out,
                                   const at::Tensor& log_sum_exp,
                                   const at::Tensor& grad_out,
                                   Heads& grad);

/// What the backward pass of the library's attention needs besides its inputs.
struct LibraryAttention {
  at::Tensor out;          ///< [B, T, H, D], contiguous
  at::Tensor log_sum_exp;  ///< in the library's own shape
  at::Tensor seed, offset;
};

/// Whether the GPU's library has a kernel for such heads and documents.
FORGE_CUDA_ONLY bool has_library_attention(const Heads& heads, const Documents& documents);

/// Causal attention of heads of any strides but the last, by the fastest of the GPU library's
/// kernels: cuDNN's, or where results must be the same bits each time
/// (at::globalContext().deterministicAlgorithms()) or there are documents flash attention.
FORGE_CUDA_ONLY LibraryAttention library_attention(const Heads& heads, const Documents& documents);

/// Contiguous gradients of sum(out * grad_out).
FORGE_CUDA_ONLY Heads library_attention_backward(const Heads& heads,
                                                 const Documents& documents,
                                                 const LibraryAttention& saved,
                                                 const at::Tensor& grad_out);

}  // namespace forge::ops
