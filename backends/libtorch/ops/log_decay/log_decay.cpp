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
    context->save_for_backward({x, bias});
    context->saved_data["normalizer"] = normalizer;
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(bias.scalar_type()));
    if (x.is_cuda()) {
      log_decay_forward_cuda(x, bias, normalizer, y);
      return y;
    }
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
    return y;
  }

  /// The slope of log(sigmoid(z)) is sigmoid(-z).
  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &bias = saved[1];
    const at::Tensor grad_y = grad_outputs[0].contiguous();
    const double normalizer = context->saved_data["normalizer"].toDouble();
    const int64_t channels = x.size(1);
    at::Tensor grad_x = at::empty_like(x);
    if (x.is_cuda()) {
      at::Tensor grad_bias;
      log_decay_backward_cuda(x, bias, normalizer, grad_y, grad_x, grad_bias);
      return {grad_x, grad_bias, {}};
    }
    at::Tensor sums = at::zeros({chunk_count(x.size(0)), channels}, x.options());
    with_element_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const T factor = static_cast<T>(1 / normalizer);
      for_each_row_chunk(x.size(0), [&](int64_t chunk, int64_t begin, int64_t end) {
        T* sum = sums.data_ptr<T>() + chunk * channels;
        with_simd([&]() FORGE_SIMD_BODY {
          for (int64_t row = begin; row < end; ++row) {
            const T *in = x.data_ptr<T>() + row * channels, *shift = bias.data_ptr<T>(),
                    *upstream = grad_y.data_ptr<T>() + row * channels;
            T* grad = grad_x.data_ptr<T>() + row * channels;
#pragma omp simd
            for (int64_t c = 0; c < channels; ++c) {
              grad[c] = upstream[c] * factor * sigmoid(-(in[c] + shift[c]));
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
  const bool fused = bias.scalar_type() == small_weight_type(x) &&
                     (has_cpu_kernel(x) || (has_cuda_kernel(x) && is_vector_aligned(x)));
  if (!fused) return log_decay_reference(x, bias, normalizer);
  return LogDecay::apply(whole_vectors(x).view({-1, x.size(-1)}), bias.contiguous(), normalizer)
      .view(x.sizes());
}

}  // namespace forge::ops
