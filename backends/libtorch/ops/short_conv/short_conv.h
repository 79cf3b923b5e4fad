#pragma once

#include <vector>

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// Some channels of a projection.
struct ProjectionPart {
  int64_t channels;
  bool is_mixed = false;   ///< the short convolution and silu act on it
  int64_t head_width = 0;  ///< its heads of so many channels get length 1; 0: they do not
};

/// What acts on the mixed parts, C channels side by side. Small weights are of the activations'
/// type, or float32 beside bfloat16.
struct ShortConv {
  at::Tensor weight;  ///< [C, 1, K], K in 2..4, the last tap the current token's; undefined: none
  at::Tensor bias;    ///< [C], or undefined
  bool silu = true;
  double length_eps = 1e-6;  ///< added to the sum of squares of a head
};

/// Divides a projection x [B, T, W] into its parts; channels behind them, which fill rows up, are
/// ignored. Mixed parts, which lie side by side, go through
///     y = [silu](conv(x) + bias)
///     y / sqrt(sum(y^2) + length_eps)     over each head that gets length 1
/// where conv is a depthwise causal convolution over time without residual.
/// Returns the parts [B, T, channels]: mixed ones contiguous, the others as they lie in x, of which
/// they are views. Differentiable in x, weight and bias. The backward pass keeps x and computes the
/// rest again.
///
/// On a GPU one kernel each way, for 4 taps or none and places that are multiples of 4 channels; x
/// may be rows of a wider tensor. Otherwise of plain Torch operations.
std::vector<at::Tensor> short_conv(const at::Tensor& x,
                                   const ShortConv& conv,
                                   const std::vector<ProjectionPart>& parts);
std::vector<at::Tensor> short_conv_reference(const at::Tensor& x,
                                             const ShortConv& conv,
                                             const std::vector<ProjectionPart>& parts);

/// Whether the GPU's kernels compute this.
FORGE_CUDA_ONLY bool cuda_short_conv_supports(const at::Tensor& x,
                                              const ShortConv& conv,
                                              const std::vector<ProjectionPart>& parts);

/// Where that is so, of x whose tokens lie equally far apart: writes the results of mixed parts.
FORGE_CUDA_ONLY void short_conv_forward_cuda(const at::Tensor& x,
                                             const ShortConv& conv,
                                             const std::vector<ProjectionPart>& parts,
                                             const std::vector<at::Tensor>& results);

/// From contiguous gradients of all parts: writes grad_x, whose tokens may lie apart too, and
/// replaces the gradients of weight and bias where there are any.
FORGE_CUDA_ONLY void short_conv_backward_cuda(const at::Tensor& x,
                                              const ShortConv& conv,
                                              const std::vector<ProjectionPart>& parts,
                                              const std::vector<at::Tensor>& grad_parts,
                                              at::Tensor& grad_x,
                                              at::Tensor& grad_w,
                                              at::Tensor& grad_bias);

}  // namespace forge::ops
