#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The gradients are made in the forward pass, while a chunk's logits are at hand; the backward
/// pass only scales them, and mostly by one.
struct LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            const at::Tensor& targets,
                            int64_t z_loss,
                            double coefficient) {
    const auto gradient_of = [](const at::Tensor& input) {
      return input.requires_grad() ? at::empty_like(input) : at::Tensor();
    };
    at::Tensor grad_x = gradient_of(x), grad_w = gradient_of(w);
    const CrossEntropyOptions options{static_cast<CrossEntropyOptions::ZLoss>(z_loss), coefficient};
    const at::Tensor loss = linear_cross_entropy_cpu(x, w, targets, options, grad_x, grad_w);
    context->saved_data["grad_x"] = grad_x;
    context->saved_data["grad_w"] = grad_w;
    return loss;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const bool one = grad_outputs[0].item<double>() == 1;
    const auto scaled = [&](const char* name) {
      const at::Tensor grad = context->saved_data[name].toTensor();
      return !grad.defined() || one ? grad : grad * grad_outputs[0];
    };
    variable_list grads = {scaled("grad_x"), scaled("grad_w"), {}, {}, {}};
    context->saved_data.clear();
    return grads;
  }
};

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x,
                                const at::Tensor& w,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options) {
  TORCH_CHECK(x.dim() == 2 && w.dim() == 2 && x.size(1) == w.size(1),
              "linear_cross_entropy: x must be [rows, channels] and w [vocabulary, channels], are ",
              x.sizes(),
              " and ",
              w.sizes());
  check_targets(targets, x.size(0), w.size(0));
  const bool fused = x.is_cpu() && x.scalar_type() == w.scalar_type() &&
                     (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  if (!fused) return linear_cross_entropy_reference(x, w, targets, options);
  if (!at::GradMode::is_enabled()) {
    at::Tensor none;
    return linear_cross_entropy_cpu(
        x.contiguous(), w.contiguous(), targets.contiguous(), options, none, none);
  }
  return LinearCrossEntropy::apply(x.contiguous(),
                                   w.contiguous(),
                                   targets.contiguous(),
                                   static_cast<int64_t>(options.z_loss),
                                   options.coefficient);
}

}  // namespace forge::ops
