#include <cmath>

#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

template <class T>
FORGE_INLINE void forward_rows(
    int64_t begin, int64_t end, int64_t channels, T eps, const T* x, const T* w, T* y, T* scale) {
  for (int64_t row = begin; row < end; ++row) {
    const T* in = x + row * channels;
    T* out = y + row * channels;
    T squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t c = 0; c < channels; ++c) squares += in[c] * in[c];
    const T s = 1 / std::sqrt(squares / static_cast<T>(channels) + eps);
    scale[row] = s;
    for (int64_t c = 0; c < channels; ++c) out[c] = w[c] * (in[c] * s);
  }
}

/// grad_x = s * (w*g - n * mean(w*g*n)) with n = x*s the normalised input; sums[c] += g*n.
template <class T>
FORGE_INLINE void backward_rows(int64_t begin,
                                int64_t end,
                                int64_t channels,
                                const T* x,
                                const T* w,
                                const T* scale,
                                const T* grad,
                                T* grad_x,
                                T* __restrict sums) {
  for (int64_t row = begin; row < end; ++row) {
    const T* in = x + row * channels;
    const T* g = grad + row * channels;
    T* out = grad_x + row * channels;
    const T s = scale[row];
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t c = 0; c < channels; ++c) dot += w[c] * g[c] * in[c];
    const T shift = dot * s * s / static_cast<T>(channels);
    for (int64_t c = 0; c < channels; ++c) {
      sums[c] += g[c] * (in[c] * s);
      out[c] = s * (w[c] * g[c] - in[c] * shift);
    }
  }
}

template <class T>
void forward(
    const at::Tensor& x, const at::Tensor& w, double eps, at::Tensor& y, at::Tensor& scale) {
  for_each_row_chunk(x.size(0), [&](int64_t, int64_t begin, int64_t end) {
    with_simd([&]() FORGE_SIMD_BODY {
      forward_rows(begin,
                   end,
                   x.size(1),
                   static_cast<T>(eps),
                   x.data_ptr<T>(),
                   w.data_ptr<T>(),
                   y.data_ptr<T>(),
                   scale.data_ptr<T>());
    });
  });
}

template <class T>
void backward(const at::Tensor& x,
              const at::Tensor& w,
              const at::Tensor& scale,
              const at::Tensor& grad_y,
              at::Tensor& grad_x,
              at::Tensor& grad_w) {
  const int64_t channels = x.size(1);
  at::Tensor sums = at::zeros({chunk_count(x.size(0)), channels}, x.options());
  for_each_row_chunk(x.size(0), [&](int64_t chunk, int64_t begin, int64_t end) {
    with_simd([&]() FORGE_SIMD_BODY {
      backward_rows(begin,
                    end,
                    channels,
                    x.data_ptr<T>(),
                    w.data_ptr<T>(),
                    scale.data_ptr<T>(),
                    grad_y.data_ptr<T>(),
                    grad_x.data_ptr<T>(),
                    sums.data_ptr<T>() + chunk * channels);
    });
  });
  at::sum_out(grad_w, sums, {0});
}

}  // namespace

void rms_norm_forward_cpu(
    const at::Tensor& x, const at::Tensor& w, double eps, at::Tensor& y, at::Tensor& scale) {
  x.scalar_type() == at::kFloat ? forward<float>(x, w, eps, y, scale)
                                : forward<double>(x, w, eps, y, scale);
}

void rms_norm_backward_cpu(const at::Tensor& x,
                           const at::Tensor& w,
                           const at::Tensor& scale,
                           const at::Tensor& grad_y,
                           at::Tensor& grad_x,
                           at::Tensor& grad_w) {
  x.scalar_type() == at::kFloat ? backward<float>(x, w, scale, grad_y, grad_x, grad_w)
                                : backward<double>(x, w, scale, grad_y, grad_x, grad_w);
}

}  // namespace forge::ops
