#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/rotary/kernels.h"
#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void rotary_cpu(const at::Tensor& x, const RotaryTable& table, int direction, at::Tensor& y) {
  const int64_t length = x.size(1), heads = x.size(2), width = x.size(3), half = table.cos.size(1);
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    at::parallel_for(0, x.size(0) * length, 64, [&](int64_t first, int64_t last) {
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t i = first; i < last; ++i) {
          const int64_t row = i / length, t = i % length;
          const T* in = x.data_ptr<T>() + row * x.stride(0) + t * x.stride(1);
          T* out = y.data_ptr<T>() + i * heads * width;
          for (int64_t head = 0; head < heads; ++head) {
            rotate_head(in + head * x.stride(2),
                        table.cos.data_ptr<T>() + t * half,
                        table.sin.data_ptr<T>() + t * half,
                        half,
                        width,
                        table.interleaved,
                        static_cast<T>(direction),
                        out + head * width);
          }
        }
      });
    });
  });
}

}  // namespace forge::ops
