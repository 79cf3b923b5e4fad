#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/rms_norm/kernels.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

void rms_norm_forward_cpu(
    const at::Tensor& x, const at::Tensor& w, double eps, at::Tensor& y, at::Tensor& scale) {
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t channels = x.size(1);
    for_each_row_chunk(x.size(0), [&](int64_t, int64_t begin, int64_t end) {
      const T *in = x.data_ptr<T>(), *weight = w.data_ptr<T>();
      T *out = y.data_ptr<T>(), *scales = scale.data_ptr<T>();
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          const T* token = in + row * channels;
          scales[row] = rms_scale(channels, static_cast<T>(eps), token);
          rms_norm_token(channels, scales[row], token, weight, out + row * channels);
        }
      });
    });
  });
}

void rms_norm_backward_cpu(const at::Tensor& x,
                           const at::Tensor& w,
                           const at::Tensor& scale,
                           const at::Tensor& grad_y,
                           at::Tensor& grad_x,
                           at::Tensor& grad_w) {
  const int64_t channels = x.size(1);
  at::Tensor sums = at::zeros({chunk_count(x.size(0)), channels}, x.options());
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row_chunk(x.size(0), [&](int64_t chunk, int64_t begin, int64_t end) {
      const T *in = x.data_ptr<T>(), *weight = w.data_ptr<T>(), *grad = grad_y.data_ptr<T>();
      T* own_sums = sums.data_ptr<T>() + chunk * channels;
      with_simd([&]() FORGE_SIMD_BODY {
        for (int64_t row = begin; row < end; ++row) {
          rms_norm_token_gradient(channels,
                                  scale.data_ptr<T>()[row],
                                  in + row * channels,
                                  weight,
                                  grad + row * channels,
                                  grad_x.data_ptr<T>() + row * channels,
                                  own_sums);
        }
      });
    });
  });
  at::sum_out(grad_w, sums, {0});
}

}  // namespace forge::ops
