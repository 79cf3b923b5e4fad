#pragma once

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/recomputation.h"
#include "backends/libtorch/ops/linear/linear.h"

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
  /// Makes inputs of linear attention whose values v, flattened, are x. The backward pass keeps the
  /// sources in place of x.
  Recomputation again = {};
};

/// With RMSNorm n over D channels each, w its weight and g = gate + gate_bias:
///     y = w n(o) silu(g)           gated linear attention and gated delta networks
///     y = w n(o silu(g))           gate_first: Mamba-2
/// of o + factor x in place of o where there is a skip.
///   o and gate [B, T, C], D divides C, H divides C
/// Returns y [B, T, C]. Differentiable in all tensors. The backward pass keeps the inputs, the gate
/// as it lies in a wider tensor, and computes the rest again. On a GPU one kernel each way, where
/// cuda_gated_norm_supports it; otherwise plain Torch operations.
at::Tensor gated_norm(const at::Tensor& o,
                      const at::Tensor& gate,
                      const GatedNorm& norm,
                      const HeadSkip& skip = {});
at::Tensor gated_norm_reference(const at::Tensor& o,
                                const at::Tensor& gate,
                                const GatedNorm& norm,
                                const HeadSkip& skip = {});

/// linear(gated_norm(o, gate, norm, skip), w) [+ residual] for w [N, C] and residual [B, T, N]. The
/// backward pass keeps no more than that of gated_norm.
at::Tensor gated_norm_linear(const at::Tensor& o,
                             const at::Tensor& gate,
                             const GatedNorm& norm,
                             const HeadSkip& skip,
                             const WeightMatrix& w,
                             const at::Tensor& residual = {});

/// Rows [N, C] of the same; those of the gate may lie apart.
struct GatedNormInputs {
  at::Tensor o, gate;
  GatedNorm norm;
  HeadSkip skip;
};
struct GatedNormGradients {
  at::Tensor o, gate, weight, bias, skip, factor;  ///< undefined for what there is not
};

/// Whether the GPU has kernels for these widths: multiples of 8 channels, at most 4096 in all.
FORGE_CUDA_ONLY bool cuda_gated_norm_supports(const at::Tensor& o,
                                              const GatedNorm& norm,
                                              const HeadSkip& skip);
FORGE_CUDA_ONLY void gated_norm_forward_cuda(const GatedNormInputs& inputs, at::Tensor& y);
/// Gradients of sum(y * grad_y), grad_y contiguous. Writes y again where it is defined.
FORGE_CUDA_ONLY GatedNormGradients gated_norm_backward_cuda(const GatedNormInputs& inputs,
                                                            const at::Tensor& grad_y,
                                                            const at::Tensor& y);

}  // namespace forge::ops
