#pragma once

#include <optional>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/rotary/rotary.h"

namespace forge::ops {

struct HeadLayout {
  int64_t heads, kv_heads, head_dim;
  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }  ///< of the joint projection
};

/// RMSNorm over the channels of each head, of queries and of keys.
struct HeadNorms {
  at::Tensor q, k;  ///< [D], or undefined: no norms
  RmsNormOptions options;
  bool defined() const { return q.defined(); }
};

/// What attention's heads are computed from besides the joint projection.
struct CanonRope {
  CanonLayer canon;    ///< over all channels, or none
  RotaryTable rotary;  ///< of at least T positions, or without tables: no rotation
  HeadLayout layout;
  HeadNorms norms;  ///< or none
};

/// Causal attention from a joint projection: canon over its channels, split into queries, keys and
/// values, the heads of queries and keys normalised and rotated, causal_attention.
///   qkv [B, T, (H + 2G) D] = [q | k | v]; documents and products as in causal_attention
/// Returns [B, T, H * D]. Differentiable in qkv and the weights of canon and norms.
at::Tensor self_attention(const at::Tensor& qkv,
                          const CanonRope& rope,
                          const Documents& documents = {},
                          std::optional<at::ScalarType> products = {});

at::Tensor self_attention_reference(const at::Tensor& qkv,
                                    const CanonRope& rope,
                                    const at::Tensor& doc_ids = {},
                                    int64_t window = 0);

/// heads [B, T, (H + 2G) D] = canon(qkv), those of queries and keys normalised and rotated, in one
/// pass; all contiguous, canon without activation. On the CPU `heads` may be bfloat16 where qkv is
/// float32, and there are no norms; on a GPU those are float32.
void canon_rope_forward_cpu(const at::Tensor& qkv, const CanonRope& rope, at::Tensor& heads);
FORGE_CUDA_ONLY void canon_rope_forward_cuda(const at::Tensor& qkv,
                                             const CanonRope& rope,
                                             at::Tensor& heads);

/// The gradient of the rotation: rotates queries and keys by the negative angles, in place.
void rope_backward_cpu(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad);

/// Undefined for weights that there are not.
struct CanonRopeGradients {
  at::Tensor qkv, canon, q_norm, k_norm;
};

/// In one pass, from the gradients of the heads.
FORGE_CUDA_ONLY CanonRopeGradients canon_rope_backward_cuda(const at::Tensor& qkv,
                                                            const CanonRope& rope,
                                                            const Heads& grads);

/// Whether the GPU's kernels know such heads.
FORGE_CUDA_ONLY bool has_canon_rope_cuda(const CanonRope& rope);

/// Whether heads are so small beside the GPU's memory that the backward pass keeps them instead of
/// computing them again.
FORGE_CUDA_ONLY bool keeps_heads_cuda(const at::Tensor& heads);

}  // namespace forge::ops
