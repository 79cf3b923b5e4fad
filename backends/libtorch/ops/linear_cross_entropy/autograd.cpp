#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/common/operand.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor run_on_device(const at::Tensor& x,
                         const at::Tensor& w,
                         const at::Tensor& targets,
                         const CrossEntropyOptions& options,
                         at::Tensor& grad_x,
                         at::Tensor& grad_w) {
  const auto run = x.is_cuda() ? linear_cross_entropy_cuda : linear_cross_entropy_cpu;
  return run(as_operand(x, w.scalar_type()), w, targets, options, grad_x, grad_w);
}

/// The gradients are made in the forward pass, while a chunk's logits are at hand; the backward
/// pass only scales them, and mostly by one.
struct LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& targets,
                            const at::Tensor& counted,
                            int64_t z_loss,
                            double coefficient) {
    const auto gradient_of = [](const at::Tensor& input) {
      return input.requires_grad() ? at::empty_like(input) : at::Tensor();
    };
    at::Tensor grad_x = gradient_of(x), grad_w = gradient_of(w);
    const CrossEntropyOptions options{
        static_cast<CrossEntropyOptions::ZLoss>(z_loss), coefficient, counted};
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    const at::Tensor loss = run_on_device(x, matrix.operand(), targets, options, grad_x, grad_w);
    context->saved_data["grad_x"] = grad_x;
    context->saved_data["grad_w"] = grad_w;
    return loss;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor& factor = grad_outputs[0];
    const bool one = factor.is_cpu() && factor.item<double>() == 1;
    const auto scaled = [&](const char* name) {
      at::Tensor grad = context->saved_data[name].toTensor();
      if (!grad.defined() || one) return grad;
      if (!grad.is_cuda()) return grad * factor;
      scale_unless_one_cuda(grad, factor);
      return grad;
    };
    variable_list grads = {scaled("grad_x"), scaled("grad_w"), {}, {}, {}, {}, {}};
    context->saved_data.clear();
    return grads;
  }
};

void check(const at::Tensor& x, const at::Tensor& w, const at::Tensor& targets) {
  TORCH_CHECK(x.dim() == 2 && w.dim() == 2 && x.size(1) == w.size(1),
              "linear_cross_entropy: x must be [rows, channels] and w [vocabulary, channels], are ",
              x.sizes(),
              " and ",
              w.sizes());
  check_targets(targets, x.size(0), w.size(0));
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x,
                                const WeightMatrix& matrix,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options) {
  const at::Tensor& w = matrix.operand();
  check(x, w, targets);
  if (!has_product_kernel(x, w.scalar_type()))
    return linear_cross_entropy_reference(x, matrix, targets, options);
  if (!at::GradMode::is_enabled()) {
    at::Tensor none_x, none_w;
    return run_on_device(
        x.contiguous(), w.contiguous(), targets.contiguous(), options, none_x, none_w);
  }
  return LinearCrossEntropy::apply(x.contiguous(),
                                   matrix.stored.contiguous(),
                                   or_empty(matrix.rounded),
                                   targets.contiguous(),
                                   options.counted(targets).contiguous(),
                                   static_cast<int64_t>(options.z_loss),
                                   options.coefficient);
}

at::Tensor linear_cross_entropy_sum(const at::Tensor& x,
                                    const WeightMatrix& matrix,
                                    const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  const at::Tensor& w = matrix.operand();
  check(x, w, targets);
  if (!has_product_kernel(x, w.scalar_type()))
    return negative_log_likelihood_sum(at::linear(x, matrix.differentiable()), targets);
  const auto run = x.is_cuda() ? linear_cross_entropy_sum_cuda : linear_cross_entropy_sum_cpu;
  return run(as_operand(x.contiguous(), w.scalar_type()), w.contiguous(), targets.contiguous());
}

}  // namespace forge::ops
