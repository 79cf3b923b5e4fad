#include "backends/libtorch/ops/adamw/adamw.h"

#include <cmath>

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/simd.h"
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

namespace {

/// The step's constants in the parameters' type.
template <class T>
struct Constants {
  T decay_factor, beta1, beta2, eps, rate, root_correction2;
  explicit Constants(const AdamWStep& s)
      : decay_factor(static_cast<T>(1 - s.lr * s.weight_decay)),
        beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        eps(static_cast<T>(s.eps)),
        rate(static_cast<T>(s.lr / (1 - std::pow(s.beta1, double(s.step))))),
        root_correction2(static_cast<T>(std::sqrt(1 - std::pow(s.beta2, double(s.step))))) {}
};

template <class T>
FORGE_INLINE void update_range(const Constants<T>& k,
                               int64_t begin,
                               int64_t end,
                               T* __restrict p,
                               const T* g,
                               T* __restrict m,
                               T* __restrict v) {
  for (int64_t i = begin; i < end; ++i) {
    m[i] = k.beta1 * m[i] + (1 - k.beta1) * g[i];
    v[i] = k.beta2 * v[i] + (1 - k.beta2) * g[i] * g[i];
    p[i] = k.decay_factor * p[i] - k.rate * m[i] / (std::sqrt(v[i]) / k.root_correction2 + k.eps);
  }
}

}  // namespace

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
      has_cpu_kernel(parameter) && parameter.is_contiguous() && gradient.is_contiguous();
  if (!fused) return adamw_reference_(parameter, gradient, first_moment, second_moment, step);
  with_element_type(parameter.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const Constants<T> constants(step);
    at::parallel_for(0, parameter.numel(), 16384, [&](int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        update_range(constants,
                     begin,
                     end,
                     parameter.data_ptr<T>(),
                     gradient.data_ptr<T>(),
                     first_moment.data_ptr<T>(),
                     second_moment.data_ptr<T>());
      });
    });
  });
}

}  // namespace forge::ops
