#include "tests/support/op_check.h"

#include <cmath>

namespace forge::tests {
namespace {

struct Outcome {
  at::Tensor output;
  std::vector<at::Tensor> gradients;
};

Outcome run(const Operation& operation,
            const std::vector<at::Tensor>& inputs,
            const at::Tensor& upstream) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.detach().clone().requires_grad_(true));
  // The operation sees non-contiguous views of leaves, as the model gives it.
  std::vector<at::Tensor> views;
  for (const at::Tensor& leaf : leaves) {
    const at::Tensor wide = at::cat({leaf, leaf.detach()}, 0);
    views.push_back(wide.narrow(0, 0, leaf.size(0)));
  }
  Outcome outcome;
  outcome.output = operation(views);
  (outcome.output * (upstream.defined() ? upstream : at::ones_like(outcome.output)))
      .sum()
      .backward();
  for (const at::Tensor& leaf : leaves) {
    outcome.gradients.push_back(leaf.grad().defined() ? leaf.grad()
                                                      : at::zeros_like(leaf.detach()));
  }
  return outcome;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (a.numel() == 0) return 0;
  const double scale = std::max(1.0, b.detach().abs().max().item<double>());
  const double difference = (a.detach() - b.detach()).abs().max().item<double>() / scale;
  return std::isfinite(difference) ? difference : INFINITY;
}

}  // namespace

double fused_against_reference(const Operation& fused,
                               const Operation& reference,
                               const std::vector<at::Tensor>& inputs) {
  const at::Tensor shape = reference(inputs);
  const at::Tensor upstream = at::randn_like(shape.detach());
  const Outcome a = run(fused, inputs, upstream);
  const Outcome b = run(reference, inputs, upstream);
  double worst = relative_difference(a.output, b.output);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    worst = std::max(worst, relative_difference(a.gradients[i], b.gradients[i]));
  }
  return worst;
}

at::Tensor sliced_normal(at::IntArrayRef shape, at::ScalarType type) {
  std::vector<int64_t> wider = shape.vec();
  wider.back() += 3;
  return at::randn(wider, type).narrow(-1, 1, shape.back());
}

}  // namespace forge::tests
