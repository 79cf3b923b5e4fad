#include "backends/libtorch/ops/common/operand.h"

#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor as_operand(const at::Tensor& x, at::ScalarType type) {
  if (x.scalar_type() == type) return x;
  const at::Tensor wide = x.contiguous();
  at::Tensor narrow = at::empty(x.sizes(), x.options().dtype(type));
  at::parallel_for(0, x.numel(), 16384, [&](int64_t begin, int64_t end) {
    const float* in = wide.data_ptr<float>();
    at::BFloat16* out = narrow.data_ptr<at::BFloat16>();
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = begin; i < end; ++i) out[i] = rounded<at::BFloat16>(in[i]);
    });
  });
  return narrow;
}

}  // namespace forge::ops
