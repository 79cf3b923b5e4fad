#include "backends/libtorch/ops/common/gradient_memory.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace forge::ops {

at::Tensor empty_gradient(const at::Tensor& weight) {
  if (const auto node = torch::autograd::impl::try_get_grad_accumulator(weight)) {
    for (const auto& hook : node->post_hooks()) {
      auto* receiver = dynamic_cast<GradientReceiver*>(hook.get());
      const at::Tensor memory = receiver ? receiver->memory() : at::Tensor();
      if (memory.defined()) return memory;
    }
  }
  return at::empty(weight.sizes(), weight.options().requires_grad(false));
}

}  // namespace forge::ops
