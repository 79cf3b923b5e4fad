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

/// Divides a projection x [B, T, W] into its parts. Mixed ones, which lie side by side, go through
///     y = [silu](conv(x) + bias),   y / sqrt(sum(y^2) + length_eps) over each head that gets
///     length 1
/// where conv is a depthwise causal convolution over time without residual.
/// Returns the parts [B, T, channels], contiguous. Differentiable in x, weight and bias. The
/// backward pass keeps x and computes the rest again.
std::vector<at::Tensor> short_conv(const at::Tensor& x,
                                   const ShortConv& conv,
                                   const std::vector<ProjectionPart>& parts);
std::vector<at::Tensor> short_conv_reference(const at::Tensor& x,
                                             const ShortConv& conv,
                                             const std::vector<ProjectionPart>& parts);

}  // namespace forge::ops
