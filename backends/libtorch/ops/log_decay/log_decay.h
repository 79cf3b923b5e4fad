#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// Log decays of gated linear attention (Yang et al. 2023): log(sigmoid(x + bias)) / normalizer.
///   x [..., C], bias [C] of x's type or float32; the result [..., C] in bias's type
/// Differentiable in x and bias. The backward pass keeps the result alone.
at::Tensor log_decay(const at::Tensor& x, const at::Tensor& bias, double normalizer);
at::Tensor log_decay_reference(const at::Tensor& x, const at::Tensor& bias, double normalizer);

}  // namespace forge::ops
