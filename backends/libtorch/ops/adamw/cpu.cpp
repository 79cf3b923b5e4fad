#include <cmath>

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// The step's constants in the parameters' type.
template <class T>
struct Constants {
  T keep, beta1, beta2, eps, rate, root_correction2;
  explicit Constants(const AdamWStep& s)
      : keep(static_cast<T>(1 - s.lr * s.weight_decay)),
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
    p[i] = k.keep * p[i] - k.rate * m[i] / (std::sqrt(v[i]) / k.root_correction2 + k.eps);
  }
}

}  // namespace

void adamw_cpu_(at::Tensor& parameter,
                const at::Tensor& gradient,
                at::Tensor& first_moment,
                at::Tensor& second_moment,
                const AdamWStep& step) {
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
