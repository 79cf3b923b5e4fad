#pragma once

#include <functional>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::tests {

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Runs both operations on copies of the inputs, forward and backward from one random upstream
/// gradient; returns the largest difference of outputs and gradients, relative to their size where
/// that is above one.
double fused_against_reference(const Operation& fused,
                               const Operation& reference,
                               const std::vector<at::Tensor>& inputs);

/// A random normal tensor that is a slice of a larger one, so that wrong strides show.
at::Tensor sliced_normal(at::IntArrayRef shape, at::ScalarType type);

}  // namespace forge::tests
