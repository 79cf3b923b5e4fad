#include "backends/libtorch/ops/norm_linear/norm_linear.h"

#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/ops/rms_norm/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

NormLinear norm_linear_reference(const at::Tensor& x,
                                 const at::Tensor& norm_w,
                                 const RmsNormOptions& norm,
                                 const CanonLayer& canon,
                                 const WeightMatrix& w) {
  const at::Tensor y = canon_layer_reference(rms_norm_reference(x, norm_w, norm), canon);
  return {at::linear(y, w.differentiable()), x};
}

namespace {

using canon::Chunk;
using canon::Tokens;

template <class T, class Out>
FORGE_INLINE void normalise(
    int64_t begin, int64_t end, T eps, const Tokens<const T>& x, const T* w, const Tokens<Out>& y) {
  for (int64_t t = begin; t < end; ++t) {
    rms_norm_token(x.channels, rms_scale(x.channels, eps, x.at(t)), x.at(t), w, y.at(t));
  }
}

/// sums [chunks][C] added up in their order.
template <class T>
void add_up(int64_t chunks, int64_t channels, const T* sums, T* total) {
  std::fill(total, total + channels, T(0));
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t c = 0; c < channels; ++c) total[c] += sums[chunk * channels + c];
  }
}

template <class T>
FORGE_INLINE void add_token(int64_t channels, const T* x, T* sum) {
  for (int64_t c = 0; c < channels; ++c) sum[c] += x[c];
}

}  // namespace

void norm_canon_forward_cpu(const at::Tensor& x, const NormCanon& layers, at::Tensor& y) {
  with_operand_type(y.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const canon::Convolution<T> p = canon::convolution<T>(x, layers.canon);
    const T* w = layers.weight.data_ptr<T>();
    const T eps = static_cast<T>(layers.norm.eps);
    const int64_t size = (chunk_rows + canon::max_kernel) * p.channels;
    const auto task = [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(x, chunk);
      const auto out = p.template row_to_write<Out>(y, chunk);
      const int64_t first = std::max<int64_t>(0, chunk.begin - p.halo());
      const Tokens<T> normalised{memory, first, p.channels};
      with_simd([&]() FORGE_SIMD_BODY {
        if (p.kernel == 0) return normalise(chunk.begin, chunk.end, eps, in, w, out);
        normalise(first, chunk.end, eps, in, w, normalised);
        canon::convolve(p, chunk, p.all(), normalised.read(), out);
      });
    };
    canon::for_each_chunk<T>(p.batch, p.length, size, task);
  });
}

void norm_canon_backward_cpu(const at::Tensor& x,
                             const NormCanon& layers,
                             const at::Tensor& grad_y,
                             const at::Tensor& grad_residual,
                             NormCanonGradients& grad) {
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Convolution<T> p = canon::convolution<T>(x, layers.canon);
    const T* w = layers.weight.data_ptr<T>();
    const T eps = static_cast<T>(layers.norm.eps);
    const int64_t chunks = p.chunk_count(), channels = p.channels;
    const int64_t taps_size = p.kernel * channels;
    const T* past = grad_residual.defined() ? grad_residual.data_ptr<T>() : nullptr;
    std::vector<T> norm_sums(chunks * channels, T(0)), tap_sums(chunks * taps_size, T(0));
    const int64_t size = (chunk_rows + canon::max_kernel) * channels;
    const auto task = [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(x, chunk);
      const auto upstream = p.row_to_read(grad_y, chunk);
      const auto out = p.template row_to_write<T>(grad.x, chunk);
      const int64_t first = std::max<int64_t>(0, chunk.begin - p.halo());
      T* norm_sums_of_chunk = norm_sums.data() + chunk.index * channels;
      T* tap_sums_of_chunk = tap_sums.data() + chunk.index * taps_size;
      // First what the convolution read, then, over it, the gradient of what it read.
      const Tokens<T> normalised{memory, first, channels};
      const Tokens<T> written{memory, chunk.begin, channels};
      const Tokens<const T> grad_normed = p.kernel == 0 ? upstream : written.read();
      with_simd([&]() FORGE_SIMD_BODY {
        if (p.kernel > 0) {
          normalise(first, chunk.end, eps, in, w, normalised);
          canon::accumulate_taps(p, chunk, p.all(), normalised.read(), upstream, tap_sums_of_chunk);
          canon::convolve_transposed(p, chunk, p.all(), upstream, written);
        }
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          const T scale = rms_scale(channels, eps, in.at(t));
          rms_norm_token_gradient(
              channels, scale, in.at(t), w, grad_normed.at(t), out.at(t), norm_sums_of_chunk);
          if (past) add_token(channels, past + (chunk.row * p.length + t) * channels, out.at(t));
        }
      });
    };
    canon::for_each_chunk<T>(p.batch, p.length, size, task);
    add_up(chunks, channels, norm_sums.data(), grad.weight.data_ptr<T>());
    if (p.kernel > 0) {
      canon::add_up_taps(channels, p.kernel, chunks, tap_sums.data(), grad.canon.data_ptr<T>());
    }
  });
}

namespace {

struct NormLinearArguments {
  NormCanon layers;
  WeightMatrix matrix;
};

/// The weights that autograd tracks are arguments of their own; their gradients are returned.
struct NormLinearFunction : public torch::autograd::Function<NormLinearFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const at::Tensor&,  // the weights of norm and convolution
                               const at::Tensor&,
                               const at::Tensor&,  // the matrix
                               const NormLinearArguments& arguments) {
    const auto& [layers, matrix] = arguments;
    context->set_materialize_grads(false);
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(matrix.operand().scalar_type()));
    at::Tensor scales;
    if (x.is_cuda()) {
      scales = at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kFloat));
      norm_canon_forward_cuda(x, layers, y, scales);
    } else {
      norm_canon_forward_cpu(x, layers, y);
    }
    context->save_for_backward({x, scales});
    keep_arguments(context, arguments);
    at::Tensor out = at::empty({x.size(0), x.size(1), matrix.stored.size(0)}, x.options());
    at::Tensor out_rows = token_rows(out);
    linear_forward(token_rows(y), matrix.operand(), {}, out_rows);
    return {out, x};
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const auto arguments = kept_arguments<NormLinearArguments>(context);
    const auto& [layers, matrix] = arguments;
    const at::Tensor &x = saved[0], &w = matrix.operand(), &canon_w = layers.canon.weight;
    const at::Tensor grad_residual = contiguous(grad_outputs[1]);
    if (!grad_outputs[0].defined()) return {grad_residual, {}, {}, {}, {}};
    const at::Tensor grad = as_operand(token_rows(grad_outputs[0].contiguous()), w.scalar_type());
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(w.scalar_type()));
    at::Tensor grad_w = empty_gradient(matrix.stored);
    NormCanonGradients grads{at::empty_like(x), at::empty_like(layers.weight), {}};
    if (canon_w.defined()) grads.canon = at::empty_like(canon_w);
    if (x.is_cuda()) {
      at::Tensor grad_y = at::empty_like(x), grad_y_rows = token_rows(grad_y);
      linear_backward_x(grad, w, grad_y_rows);
      norm_canon_backward_cuda(x, layers, saved[1], grad_y, grad_residual, y, grads);
      linear_backward_w(grad, token_rows(y), grad_w);
      return {grads.x, grads.weight, grads.canon, grad_w, {}};
    }
    norm_canon_forward_cpu(x, layers, y);
    linear_backward_w(grad, token_rows(y), grad_w);
    // y is no longer needed.
    at::Tensor grad_y = y.scalar_type() == x.scalar_type() ? y : at::empty_like(x);
    at::Tensor grad_y_rows = token_rows(grad_y);
    linear_backward_x(grad, w, grad_y_rows);
    norm_canon_backward_cpu(x, layers, grad_y, grad_residual, grads);
    return {grads.x, grads.weight, grads.canon, grad_w, {}};
  }
};

}  // namespace

NormLinear norm_linear(const at::Tensor& x,
                       const at::Tensor& norm_w,
                       const RmsNormOptions& norm,
                       const CanonLayer& canon,
                       const WeightMatrix& w) {
  const at::Tensor& operand = w.operand();
  TORCH_CHECK(x.dim() == 3 && norm_w.dim() == 1 && operand.dim() == 2 &&
                  x.size(2) == norm_w.size(0) && x.size(2) == operand.size(1),
              "norm_linear: x must be [batch, tokens, channels], norm_w [channels] and w [any, "
              "channels], are ",
              x.sizes(),
              ", ",
              norm_w.sizes(),
              " and ",
              operand.sizes());
  if (canon.weight.defined()) check_canon_shapes(x, canon.weight, canon.doc_ids);
  const bool fused = has_product_kernel(x, operand.scalar_type()) &&
                     norm_w.scalar_type() == small_weight_type(x) &&
                     (x.is_cpu() || cuda_norm_supports(x, x.size(2))) &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return {ops::linear(canon_layer(rms_norm(x, norm_w, norm), canon), w), x};
  const NormLinearArguments arguments{{norm_w.contiguous(), norm, contiguous(canon)},
                                      contiguous(w)};
  const variable_list results = NormLinearFunction::apply(whole_vectors(x),
                                                          arguments.layers.weight,
                                                          or_empty(arguments.layers.canon.weight),
                                                          arguments.matrix.stored,
                                                          arguments);
  return {results[0], results[1]};
}

}  // namespace forge::ops
