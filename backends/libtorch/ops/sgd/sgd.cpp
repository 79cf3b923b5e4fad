#include "backends/libtorch/ops/sgd/sgd.h"

#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void sgd_reference_(at::Tensor& parameter,
                    const at::Tensor& gradient,
                    at::Tensor& buffer,
                    const SgdStep& step) {
  parameter.mul_(1 - step.lr * step.weight_decay);
  if (step.momentum == 0) {
    parameter.add_(gradient, -step.lr);
    return;
  }
  buffer.mul_(step.momentum).add_(gradient);
  if (step.nesterov) {
    parameter.add_(gradient + step.momentum * buffer, -step.lr);
  } else {
    parameter.add_(buffer, -step.lr);
  }
}

namespace {

template <class T>
struct SgdConstants {
  T lr, momentum, decay_factor;
  bool nesterov;
  explicit SgdConstants(const SgdStep& s)
      : lr(static_cast<T>(s.lr)),
        momentum(static_cast<T>(s.momentum)),
        decay_factor(static_cast<T>(1 - s.lr * s.weight_decay)),
        nesterov(s.nesterov) {}
};

template <class T>
FORGE_INLINE void momentum_range(const SgdConstants<T>& k,
                                 int64_t begin,
                                 int64_t end,
                                 T* __restrict p,
                                 const T* g,
                                 T* __restrict b) {
  for (int64_t i = begin; i < end; ++i) {
    b[i] = k.momentum * b[i] + g[i];
    p[i] = k.decay_factor * p[i] - k.lr * (k.nesterov ? g[i] + k.momentum * b[i] : b[i]);
  }
}

template <class T>
FORGE_INLINE void plain_range(
    const SgdConstants<T>& k, int64_t begin, int64_t end, T* __restrict p, const T* g) {
  for (int64_t i = begin; i < end; ++i) p[i] = k.decay_factor * p[i] - k.lr * g[i];
}

}  // namespace

void sgd_(at::Tensor& parameter,
          const at::Tensor& gradient,
          at::Tensor& buffer,
          const SgdStep& step) {
  const bool has_momentum = step.momentum != 0;
  TORCH_CHECK(gradient.sizes() == parameter.sizes() &&
                  (!has_momentum || buffer.sizes() == parameter.sizes()),
              "sgd: parameter is ",
              parameter.sizes(),
              ", gradient ",
              gradient.sizes());
  const bool fused =
      has_cpu_kernel(parameter) && parameter.is_contiguous() && gradient.is_contiguous();
  if (!fused) return sgd_reference_(parameter, gradient, buffer, step);
  with_element_type(parameter.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const SgdConstants<T> constants(step);
    T* const p = parameter.data_ptr<T>();
    T* const b = has_momentum ? buffer.data_ptr<T>() : nullptr;
    const T* const g = gradient.data_ptr<T>();
    at::parallel_for(0, parameter.numel(), 16384, [&](int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        b ? momentum_range(constants, begin, end, p, g, b)
          : plain_range(constants, begin, end, p, g);
      });
    });
  });
}

}  // namespace forge::ops
