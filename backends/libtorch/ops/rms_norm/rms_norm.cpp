#include "backends/libtorch/ops/rms_norm/rms_norm.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/rms_norm/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor rms_norm_reference(const at::Tensor& x,
                              const at::Tensor& w,
                              const RmsNormOptions& options) {
  const bool low_precision = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = low_precision ? x.to(at::kFloat) : x;
  const at::Tensor scale = (wide * wide).mean(-1, true).add(options.eps).rsqrt();
  const at::Tensor normalised = wide * scale;
  if (options.round_before_weight) return (w * normalised.to(x.scalar_type())).to(x.scalar_type());
  return (w.to(wide.scalar_type()) * normalised).to(x.scalar_type());
}

namespace {

/// On a CPU: y = w x scale, scale [N] = 1 / sqrt(mean(x^2) + eps), of x and y [N, C].
struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            double eps) {
    at::Tensor y = at::empty_like(x);
    at::Tensor scale = at::empty({x.size(0)}, x.options());
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
    context->save_for_backward({x, w, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1], &scale = saved[2];
    const at::Tensor grad_y = grad_outputs[0].contiguous();
    const int64_t channels = x.size(1);
    at::Tensor grad_x = at::empty_like(x), grad_w = at::empty_like(w);
    at::Tensor sums = at::zeros({chunk_count(x.size(0)), channels}, x.options());
    with_element_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      for_each_row_chunk(x.size(0), [&](int64_t chunk, int64_t begin, int64_t end) {
        const T *in = x.data_ptr<T>(), *weight = w.data_ptr<T>(), *grad = grad_y.data_ptr<T>();
        T* chunk_sums = sums.data_ptr<T>() + chunk * channels;
        with_simd([&]() FORGE_SIMD_BODY {
          for (int64_t row = begin; row < end; ++row) {
            rms_norm_token_gradient(channels,
                                    scale.data_ptr<T>()[row],
                                    in + row * channels,
                                    weight,
                                    grad + row * channels,
                                    grad_x.data_ptr<T>() + row * channels,
                                    chunk_sums);
          }
        });
      });
    });
    at::sum_out(grad_w, sums, {0});
    return {grad_x, grad_w, {}};
  }
};

/// The parts of x [1, N, C] under two norms, and the rest.
std::vector<at::Tensor> split_parts(const at::Tensor& x,
                                    const at::Tensor& first,
                                    const at::Tensor& second) {
  const int64_t a = first.size(0), b = second.size(0);
  return at::split_with_sizes(x, {a, b, x.size(2) - a - b}, 2);
}

/// On a GPU: one norm of the first channels of x [1, N, C] and another one of those after them,
/// where they lie. An empty `second`: there is one norm.
struct RmsNormCuda : public torch::autograd::Function<RmsNormCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& first,
                            const at::Tensor& second,
                            const RmsNormOptions& options) {
    const at::Tensor y = at::empty_like(x);
    const std::vector<at::Tensor> in = split_parts(x, first, second);
    std::vector<at::Tensor> out = split_parts(y, first, second);
    variable_list saved = {x, first, second};
    for (size_t i = 0; i < 2; ++i) {
      at::Tensor scales = at::empty({1, x.size(1)}, x.options().dtype(at::kFloat));
      if (saved[1 + i].numel() > 0)
        norm_canon_forward_cuda(in[i], {saved[1 + i], options, {}}, out[i], scales);
      saved.push_back(scales);
    }
    out[2].copy_(in[2]);
    context->save_for_backward(saved);
    keep_arguments(context, options);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto options = kept_arguments<RmsNormOptions>(context);
    const at::Tensor grad_y = grad_outputs[0].contiguous(), grad_x = at::empty_like(saved[0]);
    const std::vector<at::Tensor> in = split_parts(saved[0], saved[1], saved[2]);
    const std::vector<at::Tensor> grad = split_parts(grad_y, saved[1], saved[2]);
    std::vector<at::Tensor> out = split_parts(grad_x, saved[1], saved[2]);
    variable_list grads = {grad_x, at::empty_like(saved[1]), at::empty_like(saved[2]), {}};
    at::Tensor no_output;
    for (size_t i = 0; i < 2; ++i) {
      if (saved[1 + i].numel() == 0) continue;
      NormCanonGradients of_part{out[i], {}, {}};
      norm_canon_backward_cuda(
          in[i], {saved[1 + i], options, {}}, saved[3 + i], grad[i], {}, no_output, of_part);
      grads[1 + i] = of_part.weight;
    }
    out[2].copy_(grad[2]);
    return grads;
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, const RmsNormOptions& options) {
  TORCH_CHECK(w.dim() == 1 && x.dim() >= 1 && x.size(-1) == w.size(0),
              "rms_norm: x must be [..., ",
              w.size(0),
              "], is ",
              x.sizes());
  const bool fits = x.is_cpu() || cuda_norm_supports(x, x.size(-1));
  if (!has_kernel(x) || !fits || w.scalar_type() != small_weight_type(x))
    return rms_norm_reference(x, w, options);
  if (x.is_cuda()) {
    return RmsNormCuda::apply(whole_vectors(x).view({1, -1, x.size(-1)}),
                              w.contiguous(),
                              at::empty({0}, w.options()),
                              options)
        .view(x.sizes());
  }
  return RmsNorm::apply(x.contiguous().view({-1, x.size(-1)}), w.contiguous(), options.eps)
      .view(x.sizes());
}

at::Tensor rms_norm_of_parts(const at::Tensor& x,
                             const at::Tensor& first,
                             const at::Tensor& second,
                             const RmsNormOptions& options) {
  const int64_t a = first.size(0), b = second.size(0), rest = x.size(-1) - a - b;
  TORCH_CHECK(rest >= 0, "rms_norm_of_parts: x has ", x.size(-1), " channels, not ", a + b);
  const bool fused = has_cuda_kernel(x) && is_vector_aligned(x) && cuda_norm_supports(x, a) &&
                     cuda_norm_supports(x, b) && first.scalar_type() == at::kFloat &&
                     second.scalar_type() == at::kFloat;
  if (fused) {
    return RmsNormCuda::apply(whole_vectors(x).view({1, -1, x.size(-1)}),
                              first.contiguous(),
                              second.contiguous(),
                              options)
        .view(x.sizes());
  }
  const std::vector<at::Tensor> parts = at::split_with_sizes(x, {a, b, rest}, -1);
  return at::cat(
      {rms_norm(parts[0], first, options), rms_norm(parts[1], second, options), parts[2]}, -1);
}

}  // namespace forge::ops
