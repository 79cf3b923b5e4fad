#include "backends/libtorch/ops/common/kernels.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            double eps) {
    at::Tensor y = at::empty_like(x);
    at::Tensor scale = at::empty({x.size(0)}, x.options());
    rms_norm_forward_cpu(x, w, eps, y, scale);
    context->save_for_backward({x, w, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    at::Tensor grad_x = at::empty_like(saved[0]);
    at::Tensor grad_w = at::empty_like(saved[1]);
    rms_norm_backward_cpu(
        saved[0], saved[1], saved[2], grad_outputs[0].contiguous(), grad_x, grad_w);
    return {grad_x, grad_w, {}};
  }
};

/// What a GPU's kernel multiplies the tokens of x [1, N, C] by.
at::Tensor scales_of(const at::Tensor& x) {
  return at::empty({1, x.size(1)}, x.options().dtype(at::kFloat));
}

/// On a GPU: norm_linear's kernels without a convolution, rows as the tokens of one sequence.
struct RmsNormCuda : public torch::autograd::Function<RmsNormCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            double eps,
                            bool round_before_weight) {
    at::Tensor y = at::empty_like(x), scales = scales_of(x);
    norm_canon_forward_cuda(x, w, {eps, round_before_weight}, {}, y, scales);
    context->save_for_backward({x, w, scales});
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const RmsNormOptions options{context->saved_data["eps"].toDouble(),
                                 context->saved_data["round_before_weight"].toBool()};
    at::Tensor grad_x = at::empty_like(saved[0]), grad_w = at::empty_like(saved[1]);
    at::Tensor no_output, no_taps;
    norm_canon_backward_cuda(saved[0],
                             saved[1],
                             options,
                             {},
                             saved[2],
                             grad_outputs[0].contiguous(),
                             {},
                             no_output,
                             grad_x,
                             grad_w,
                             no_taps);
    return {grad_x, grad_w, {}, {}};
  }
};

/// The same of two parts of x [1, N, C], where they lie.
struct RmsNormOfPartsCuda : public torch::autograd::Function<RmsNormOfPartsCuda> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& first,
                            const at::Tensor& second,
                            double eps,
                            bool round_before_weight) {
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    const RmsNormOptions options{eps, round_before_weight};
    const std::vector<at::Tensor> in = parts(x, first, second);
    const at::Tensor y = at::empty_like(x);
    std::vector<at::Tensor> out = parts(y, first, second);
    at::Tensor scales[] = {scales_of(x), scales_of(x)};
    norm_canon_forward_cuda(in[0], first, options, {}, out[0], scales[0]);
    norm_canon_forward_cuda(in[1], second, options, {}, out[1], scales[1]);
    out[2].copy_(in[2]);
    context->save_for_backward({x, first, second, scales[0], scales[1]});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const RmsNormOptions options{context->saved_data["eps"].toDouble(),
                                 context->saved_data["round_before_weight"].toBool()};
    const at::Tensor grad_y = grad_outputs[0].contiguous(), grad_x = at::empty_like(saved[0]);
    const std::vector<at::Tensor> in = parts(saved[0], saved[1], saved[2]);
    const std::vector<at::Tensor> grad = parts(grad_y, saved[1], saved[2]);
    std::vector<at::Tensor> out = parts(grad_x, saved[1], saved[2]);
    variable_list grads = {grad_x, at::empty_like(saved[1]), at::empty_like(saved[2]), {}, {}};
    at::Tensor no_output, no_taps;
    for (size_t i = 0; i < 2; ++i) {
      norm_canon_backward_cuda(in[i],
                               saved[1 + i],
                               options,
                               {},
                               saved[3 + i],
                               grad[i],
                               {},
                               no_output,
                               out[i],
                               grads[1 + i],
                               no_taps);
    }
    out[2].copy_(grad[2]);
    return grads;
  }

 private:
  static std::vector<at::Tensor> parts(const at::Tensor& x,
                                       const at::Tensor& first,
                                       const at::Tensor& second) {
    const int64_t a = first.size(0), b = second.size(0);
    return at::split_with_sizes(x, {a, b, x.size(2) - a - b}, 2);
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, const RmsNormOptions& options) {
  TORCH_CHECK(w.dim() == 1 && x.dim() >= 1 && x.size(-1) == w.size(0),
              "rms_norm: x must be [..., ",
              w.size(0),
              "], is ",
              x.sizes());
  const bool fits = x.is_cpu() || fits_cuda_norm(x, x.size(-1));
  if (!has_kernel(x) || !fits || w.scalar_type() != small_weight_type(x))
    return rms_norm_reference(x, w, options);
  if (x.is_cuda()) {
    return RmsNormCuda::apply(x.contiguous().view({1, -1, x.size(-1)}),
                              w.contiguous(),
                              options.eps,
                              options.round_before_weight)
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
  const bool fused = has_cuda_kernel(x) && has_cuda_packs(x) && fits_cuda_norm(x, a) &&
                     fits_cuda_norm(x, b) && first.scalar_type() == at::kFloat &&
                     second.scalar_type() == at::kFloat;
  if (fused) {
    return RmsNormOfPartsCuda::apply(x.contiguous().view({1, -1, x.size(-1)}),
                                     first.contiguous(),
                                     second.contiguous(),
                                     options.eps,
                                     options.round_before_weight)
        .view(x.sizes());
  }
  const std::vector<at::Tensor> parts = at::split_with_sizes(x, {a, b, rest}, -1);
  return at::cat(
      {rms_norm(parts[0], first, options), rms_norm(parts[1], second, options), parts[2]}, -1);
}

}  // namespace forge::ops
