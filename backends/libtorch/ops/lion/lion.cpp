#include "backends/libtorch/ops/lion/lion.h"

#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void lion_reference_(at::Tensor& parameter,
                     const at::Tensor& gradient,
                     at::Tensor& momentum,
                     const LionStep& step) {
  const at::Tensor mixed = step.beta1 * momentum + (1 - step.beta1) * gradient;
  parameter.mul_(1 - step.lr * step.weight_decay).add_(mixed.sign(), -step.lr);
  momentum.mul_(step.beta2).add_(gradient, 1 - step.beta2);
}

namespace {

template <class T>
struct LionConstants {
  T lr, beta1, beta2, decay_factor;
  explicit LionConstants(const LionStep& s)
      : lr(static_cast<T>(s.lr)),
        beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        decay_factor(static_cast<T>(1 - s.lr * s.weight_decay)) {}
};

template <class T>
FORGE_INLINE void lion_range(const LionConstants<T>& k,
                             int64_t begin,
                             int64_t end,
                             T* __restrict p,
                             const T* g,
                             T* __restrict m) {
  for (int64_t i = begin; i < end; ++i) {
    const T mixed = k.beta1 * m[i] + (1 - k.beta1) * g[i];
    // A mean that is no number must show in the weight.
    const T step = mixed > 0 ? k.lr : mixed < 0 ? -k.lr : k.lr * mixed;
    p[i] = k.decay_factor * p[i] - step;
    m[i] = k.beta2 * m[i] + (1 - k.beta2) * g[i];
  }
}

}  // namespace

void lion_(at::Tensor& parameter,
           const at::Tensor& gradient,
           at::Tensor& momentum,
           const LionStep& step) {
  TORCH_CHECK(gradient.sizes() == parameter.sizes() && momentum.sizes() == parameter.sizes(),
              "lion: parameter is ",
              parameter.sizes(),
              ", gradient ",
              gradient.sizes());
  const bool fused =
      has_cpu_kernel(parameter) && parameter.is_contiguous() && gradient.is_contiguous();
  if (!fused) return lion_reference_(parameter, gradient, momentum, step);
  with_element_type(parameter.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const LionConstants<T> constants(step);
    at::parallel_for(0, parameter.numel(), 16384, [&](int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        lion_range(constants,
                   begin,
                   end,
                   parameter.data_ptr<T>(),
                   gradient.data_ptr<T>(),
                   momentum.data_ptr<T>());
      });
    });
  });
}

}  // namespace forge::ops
