#include "backends/libtorch/model/recompute.h"

#include <torch/csrc/autograd/autograd.h>

#include "backends/libtorch/ops/common/autograd.h"

namespace forge::libtorch {
namespace {

using ops::AutogradContext;
using ops::variable_list;

struct RecomputedFunction : public torch::autograd::Function<RecomputedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::TensorList&,  // the weights
                            const RecomputedPart& part) {
    context->save_for_backward({x});
    ops::keep_arguments(context, part);
    return part.forward(x);
  }

  // A backward pass within the backward pass: the engine runs it on this thread and stream.
  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const auto part = ops::kept_arguments<RecomputedPart>(context);
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    variable_list inputs = part.weights;
    inputs.insert(inputs.begin(), x);
    const at::AutoGradMode with_gradients(true);
    variable_list gradients = torch::autograd::grad({part.again(x)},
                                                    inputs,
                                                    {grad_outputs[0]},
                                                    /*retain_graph=*/false,
                                                    /*create_graph=*/false);
    gradients.emplace_back();  // of the part itself
    return gradients;
  }
};

}  // namespace

at::Tensor recomputed(const at::Tensor& x, const RecomputedPart& part) {
  const at::TensorList weights(part.weights);
  return RecomputedFunction::apply(x, weights, part);
}

}  // namespace forge::libtorch
