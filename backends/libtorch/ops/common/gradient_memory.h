#pragma once

#include <torch/csrc/autograd/function_hook.h>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

/// Runs when a weight's gradient has been found, as a hook behind the node that adds it to grad().
class GradientReceiver : public torch::autograd::FunctionPostHook {
 public:
  /// Where the gradient is to be written: memory of the weight's shape and type, with any numbers
  /// in it. Undefined where it may be anywhere.
  virtual at::Tensor memory() = 0;
};

/// Memory for a weight's gradient: where its receiver wants it, else new. Whoever asks writes all
/// of it, and returns it from its backward pass as it is: then nobody has to copy it.
at::Tensor empty_gradient(const at::Tensor& weight);

}  // namespace forge::ops
