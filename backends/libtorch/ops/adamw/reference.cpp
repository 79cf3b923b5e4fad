#include <cmath>

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void adamw_reference_(at::Tensor& parameter,
                      const at::Tensor& gradient,
                      at::Tensor& first_moment,
                      at::Tensor& second_moment,
                      const AdamWStep& step) {
  parameter.mul_(1 - step.lr * step.weight_decay);
  first_moment.mul_(step.beta1).add_(gradient, 1 - step.beta1);
  second_moment.mul_(step.beta2).addcmul_(gradient, gradient, 1 - step.beta2);
  const double correction1 = 1 - std::pow(step.beta1, double(step.step));
  const double correction2 = 1 - std::pow(step.beta2, double(step.step));
  const at::Tensor denominator = (second_moment.sqrt() / std::sqrt(correction2)).add_(step.eps);
  parameter.addcdiv_(first_moment, denominator, -step.lr / correction1);
}

void adamw_(at::Tensor& parameter,
            const at::Tensor& gradient,
            at::Tensor& first_moment,
            at::Tensor& second_moment,
            const AdamWStep& step) {
  TORCH_CHECK(gradient.sizes() == parameter.sizes() && first_moment.sizes() == parameter.sizes() &&
                  second_moment.sizes() == parameter.sizes(),
              "adamw: parameter is ",
              parameter.sizes(),
              ", gradient ",
              gradient.sizes());
  const bool fused =
      parameter.is_cpu() && parameter.is_contiguous() && gradient.is_contiguous() &&
      (parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble);
  fused ? adamw_cpu_(parameter, gradient, first_moment, second_moment, step)
        : adamw_reference_(parameter, gradient, first_moment, second_moment, step);
}

}  // namespace forge::ops
