#pragma once

#include <optional>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/rotary/rotary.h"

namespace forge::ops {

struct HeadLayout {
  int64_t heads, kv_heads, head_dim;
  int64_t turning() const { return (heads + kv_heads) * head_dim; }  ///< channels of q and k
  int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

/// Causal attention from a joint projection: canon over its channels, split into queries, keys and
/// values, queries and keys turned, causal_attention.
///   qkv [B, T, (H + 2G) D] = [q | k | v]; canon over all channels, or none; rotary of at least T
///   positions, or without tables where nothing is turned; doc_ids and products as in
///   causal_attention
/// Returns [B, T, H * D]. Differentiable in qkv and canon's weight.
at::Tensor self_attention(const at::Tensor& qkv,
                          const CanonLayer& canon,
                          const RotaryTable& rotary,
                          const HeadLayout& layout,
                          const at::Tensor& doc_ids = {},
                          std::optional<at::ScalarType> products = {});

at::Tensor self_attention_reference(const at::Tensor& qkv,
                                    const CanonLayer& canon,
                                    const RotaryTable& rotary,
                                    const HeadLayout& layout,
                                    const at::Tensor& doc_ids = {});

/// What attention reads: canon(qkv) with queries and keys turned, in one pass. Canon without
/// activation; all contiguous. On the CPU `prepared` may be bfloat16 where qkv is float32.
void prepare_heads_cpu(const at::Tensor& qkv,
                       const CanonLayer& canon,
                       const RotaryTable& rotary,
                       const HeadLayout& layout,
                       at::Tensor& prepared);
void prepare_heads_cuda(const at::Tensor& qkv,
                        const CanonLayer& canon,
                        const RotaryTable& rotary,
                        const HeadLayout& layout,
                        at::Tensor& prepared);

/// Whether the GPU's kernels know how to turn such heads.
bool can_turn_heads_cuda(const RotaryTable& rotary, const HeadLayout& layout);

/// The gradient of qkv, and of canon's weight where there is a layer, from those of the prepared
/// heads [B, T, H or G, D], in one pass.
void prepare_heads_backward_cuda(const at::Tensor& qkv,
                                 const CanonLayer& canon,
                                 const RotaryTable& rotary,
                                 const HeadLayout& layout,
                                 const at::Tensor& grad_q,
                                 const at::Tensor& grad_k,
                                 const at::Tensor& grad_v,
                                 at::Tensor& grad_qkv,
                                 at::Tensor& grad_canon);

/// Turns the gradient of queries and keys back, in place.
void turn_heads_back_cpu(const RotaryTable& rotary, const HeadLayout& layout, at::Tensor& grad);

}  // namespace forge::ops
