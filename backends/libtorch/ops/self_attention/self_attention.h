#pragma once

#include <optional>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/documents.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/rotary/rotary.h"

namespace forge::ops {

struct HeadLayout {
  int64_t heads, kv_heads, head_dim;
  int64_t turning() const { return (heads + kv_heads) * head_dim; }  ///< channels of q and k
  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

/// RMSNorm over the channels of each head, of queries and of keys.
struct HeadNorms {
  at::Tensor q, k;  ///< [D], or undefined: no norms
  RmsNormOptions options;
  bool defined() const { return q.defined(); }
};

/// Causal attention from a joint projection: canon over its channels, split into queries, keys and
/// values, the heads of queries and keys normalised and turned, causal_attention.
///   qkv [B, T, (H + 2G) D] = [q | k | v]; canon over all channels, or none; norms, or none; rotary
///   of at least T positions, or without tables where nothing is turned; documents and products as
///   in causal_attention
/// Returns [B, T, H * D]. Differentiable in qkv and the weights of canon and norms.
at::Tensor self_attention(const at::Tensor& qkv,
                          const CanonLayer& canon,
                          const RotaryTable& rotary,
                          const HeadLayout& layout,
                          const Documents& documents = {},
                          std::optional<at::ScalarType> products = {},
                          const HeadNorms& norms = {});

at::Tensor self_attention_reference(const at::Tensor& qkv,
                                    const CanonLayer& canon,
                                    const RotaryTable& rotary,
                                    const HeadLayout& layout,
                                    const at::Tensor& doc_ids = {},
                                    const HeadNorms& norms = {});

/// What attention reads: canon(qkv) with queries and keys turned, in one pass. Canon without
/// activation; all contiguous. On the CPU `prepared` may be bfloat16 where qkv is float32.
void prepare_heads_cpu(const at::Tensor& qkv,
                       const CanonLayer& canon,
                       const RotaryTable& rotary,
                       const HeadLayout& layout,
                       at::Tensor& prepared);
/// The same on a GPU, where heads may be normalised before they are turned; the norms' weights
/// float32.
void prepare_heads_cuda(const at::Tensor& qkv,
                        const CanonLayer& canon,
                        const RotaryTable& rotary,
                        const HeadLayout& layout,
                        const HeadNorms& norms,
                        at::Tensor& prepared);

/// Whether the GPU's kernels know how to turn and normalise such heads.
bool can_prepare_heads_cuda(const RotaryTable& rotary,
                            const HeadLayout& layout,
                            const HeadNorms& norms);

/// Whether prepared heads are so small beside the GPU's memory that the way back keeps them rather
/// than prepare them again.
bool keeps_prepared_heads_cuda(const at::Tensor& prepared);

/// Gradients of prepared heads [B, T, H or G, D], contiguous.
struct PreparedGradients {
  at::Tensor q, k, v;
};

/// Of what heads are prepared from; undefined for weights that there are not.
struct SourceGradients {
  at::Tensor qkv, canon, q_norm, k_norm;
};

/// In one pass.
SourceGradients prepare_heads_backward_cuda(const at::Tensor& qkv,
                                            const CanonLayer& canon,
                                            const RotaryTable& rotary,
                                            const HeadLayout& layout,
                                            const HeadNorms& norms,
                                            const PreparedGradients& grads);

/// Turns the gradient of queries and keys back, in place.
void turn_heads_back_cpu(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad);

}  // namespace forge::ops
