#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// How the outputs of a linear mixer's heads are normed and gated. Small weights are of the
/// activations' type, or float32 beside bfloat16.
struct GatedNorm {
  at::Tensor weight;     ///< [D]: D channels are normed together
  at::Tensor gate_bias;  ///< [C], or undefined
  double eps = 1e-5;
  bool gate_first = false;
};

/// A part of the heads' inputs that goes past them.
struct HeadSkip {
  at::Tensor x;       ///< [B, T, C]; undefined: there is none
  at::Tensor factor;  ///< [H], one for each head
};

/// With RMSNorm n over D channels each, w its weight and g = gate + gate_bias:
///     y = w n(o) silu(g)           gated linear attention and gated delta networks
///     y = w n(o silu(g))           gate_first: Mamba-2
/// of o + factor x in place of o where there is a skip.
///   o and gate [B, T, C], D divides C, H divides C
/// Returns y [B, T, C]. Differentiable in all tensors. The backward pass keeps the inputs and
/// computes the rest again.
at::Tensor gated_norm(const at::Tensor& o,
                      const at::Tensor& gate,
                      const GatedNorm& norm,
                      const HeadSkip& skip = {});
at::Tensor gated_norm_reference(const at::Tensor& o,
                                const at::Tensor& gate,
                                const GatedNorm& norm,
                                const HeadSkip& skip = {});

}  // namespace forge::ops
