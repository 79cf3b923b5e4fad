#include "backends/libtorch/ops/log_decay/log_decay.h"

#include "backends/libtorch/ops/common/activation.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor log_decay_reference(const at::Tensor& x, const at::Tensor& bias, double normalizer) {
  return at::log_sigmoid(x.to(bias.scalar_type()) + bias) / normalizer;
}

namespace {

/// Of x [N, C].
struct LogDecay : public torch::autograd::Function<LogDecay> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& bias,
                            double normalizer) {
    at::Tensor y = at::empty_like(x);
    with_element_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const int64_t channels = x.size(1);
      const T factor = static_cast<T>(1 / normalizer);
      for_each_row_chunk(x.size(0), [&](int64_t, int64_t begin, int64_t end) {
        with_simd([&]() FORGE_SIMD_BODY {
          for (int64_t row = begin; row < end; ++row) {
            const T *in = x.data_ptr<T>() + row * channels, *shift = bias.data_ptr<T>();
            T* out = y.data_ptr<T>() + row * channels;
#pragma omp simd
            for (int64_t c = 0; c < channels; ++c) out[c] = factor * log_sigmoid(in[c] + shift[c]);
          }
        });
      });
    });
    context->save_for_backward({y});
    context->saved_data["normalizer"] = normalizer;
    return y;
  }

  /// 1 - sigmoid is 1 - exp(normalizer y).
  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor y = context->get_saved_variables()[0];
    const at::Tensor grad_y = grad_outputs[0].contiguous();
    const double normalizer = context->saved_data["normalizer"].toDouble();
    const int64_t channels = y.size(1);
    at::Tensor grad_x = at::empty_like(y);
    at::Tensor sums = at::zeros({chunk_count(y.size(0)), channels}, y.options());
    with_element_type(y.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const T sharpness = static_cast<T>(normalizer), factor = static_cast<T>(1 / normalizer);
      for_each_row_chunk(y.size(0), [&](int64_t chunk, int64_t begin, int64_t end) {
        T* sum = sums.data_ptr<T>() + chunk * channels;
        with_simd([&]() FORGE_SIMD_BODY {
          for (int64_t row = begin; row < end; ++row) {
            const T *decay = y.data_ptr<T>() + row * channels,
                    *upstream = grad_y.data_ptr<T>() + row * channels;
            T* grad = grad_x.data_ptr<T>() + row * channels;
#pragma omp simd
            for (int64_t c = 0; c < channels; ++c) {
              grad[c] = upstream[c] * factor * (1 - fast_exp(sharpness * decay[c]));
              sum[c] += grad[c];
            }
          }
        });
      });
    });
    return {grad_x, sums.sum(0), {}};
  }
};

}  // namespace

at::Tensor log_decay(const at::Tensor& x, const at::Tensor& bias, double normalizer) {
  TORCH_CHECK(bias.dim() == 1 && x.size(-1) == bias.size(0),
              "log_decay: x must be [..., ",
              bias.size(0),
              "], is ",
              x.sizes());
  if (!has_cpu_kernel(x) || bias.scalar_type() != x.scalar_type())
    return log_decay_reference(x, bias, normalizer);
  return LogDecay::apply(x.contiguous().view({-1, x.size(-1)}), bias.contiguous(), normalizer)
      .view(x.sizes());
}

}  // namespace forge::ops
