#include "backends/libtorch/ops/norm_linear/norm_linear.h"

#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
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

/// Tokens before a chunk that its convolution reads.
int64_t reach_back(const CanonLayer& layer) {
  return layer.weight.defined() ? layer.weight.size(2) - 1 : 0;
}

template <class T>
canon::Problem<T> problem_of(const at::Tensor& x, const CanonLayer& layer) {
  if (layer.weight.defined())
    return canon::problem<T>(x, layer.weight, layer.options.residual, layer.doc_ids);
  return {x.size(0), x.size(1), x.size(2), 0, {}, nullptr};
}

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

void norm_canon_forward_cpu(const at::Tensor& x,
                            const at::Tensor& norm_w,
                            const RmsNormOptions& norm,
                            const CanonLayer& layer,
                            at::Tensor& y) {
  with_operand_type(y.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using Out = decltype(element);
    const canon::Problem<T> p = problem_of<T>(x, layer);
    const T* w = norm_w.data_ptr<T>();
    const T eps = static_cast<T>(norm.eps);
    const int64_t size = (chunk_rows + canon::max_kernel) * p.channels;
    const auto task = [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(x.data_ptr<T>(), chunk.row);
      const auto out = p.row_to_write(y.data_ptr<Out>(), chunk.row);
      const int64_t first = std::max<int64_t>(0, chunk.begin - reach_back(layer));
      const Tokens<T> normalised{memory, first, p.channels};
      const Tokens<const T> read{memory, first, p.channels};
      with_simd([&]() FORGE_SIMD_BODY {
        if (p.kernel == 0) return normalise(chunk.begin, chunk.end, eps, in, w, out);
        normalise(first, chunk.end, eps, in, w, normalised);
        canon::convolve(p, chunk.row, chunk.begin, chunk.end, p.all(), read, out);
      });
    };
    canon::for_each_chunk_with_memory<T>(p.batch, p.length, size, task);
  });
}

void norm_canon_backward_cpu(const at::Tensor& x,
                             const at::Tensor& norm_w,
                             const RmsNormOptions& norm,
                             const CanonLayer& layer,
                             const at::Tensor& grad_y,
                             const at::Tensor& grad_residual,
                             at::Tensor& grad_x,
                             at::Tensor& grad_norm_w,
                             at::Tensor& grad_canon) {
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Problem<T> p = problem_of<T>(x, layer);
    const T* w = norm_w.data_ptr<T>();
    const T eps = static_cast<T>(norm.eps);
    const int64_t chunks = canon::chunk_count(p.batch, p.length), channels = p.channels;
    const int64_t taps_size = p.kernel * channels;
    const T* past = grad_residual.defined() ? grad_residual.data_ptr<T>() : nullptr;
    std::vector<T> norm_sums(chunks * channels, T(0)), tap_sums(chunks * taps_size, T(0));
    const int64_t size = (chunk_rows + canon::max_kernel) * channels;
    const auto task = [&](const Chunk& chunk, T* memory) {
      const auto in = p.row_to_read(x.data_ptr<T>(), chunk.row);
      const auto upstream = p.row_to_read(grad_y.data_ptr<T>(), chunk.row);
      const auto out = p.row_to_write(grad_x.data_ptr<T>(), chunk.row);
      const int64_t first = std::max<int64_t>(0, chunk.begin - reach_back(layer));
      T* own_norm_sums = norm_sums.data() + chunk.index * channels;
      T* own_tap_sums = tap_sums.data() + chunk.index * taps_size;
      // First what the convolution read, then, over it, the gradient of what it read.
      const Tokens<T> normalised{memory, first, channels};
      const Tokens<const T> read{memory, first, channels};
      const Tokens<T> written{memory, chunk.begin, channels};
      const Tokens<const T> grad =
          p.kernel == 0 ? upstream : Tokens<const T>{memory, chunk.begin, channels};
      with_simd([&]() FORGE_SIMD_BODY {
        if (p.kernel > 0) {
          normalise(first, chunk.end, eps, in, w, normalised);
          canon::accumulate_taps(
              p, chunk.row, chunk.begin, chunk.end, p.all(), read, upstream, own_tap_sums);
          canon::convolve_transposed(
              p, chunk.row, chunk.begin, chunk.end, p.all(), upstream, written);
        }
        for (int64_t t = chunk.begin; t < chunk.end; ++t) {
          const T scale = rms_scale(channels, eps, in.at(t));
          rms_norm_token_gradient(
              channels, scale, in.at(t), w, grad.at(t), out.at(t), own_norm_sums);
          if (past) add_token(channels, past + (chunk.row * p.length + t) * channels, out.at(t));
        }
      });
    };
    canon::for_each_chunk_with_memory<T>(p.batch, p.length, size, task);
    add_up(chunks, channels, norm_sums.data(), grad_norm_w.data_ptr<T>());
    if (p.kernel > 0) {
      canon::add_up_taps(channels, p.kernel, chunks, tap_sums.data(), grad_canon.data_ptr<T>());
    }
  });
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [B, T, C] as rows of C.
at::Tensor rows(const at::Tensor& x) { return x.view({x.size(0) * x.size(1), x.size(2)}); }

struct NormLinearFunction : public torch::autograd::Function<NormLinearFunction> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const at::Tensor& norm_w,
                               double eps,
                               bool round_before_weight,
                               const at::Tensor& canon,
                               bool residual,
                               const at::Tensor& doc_ids,
                               const at::Tensor& w,
                               const at::Tensor& rounded_w) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    context->set_materialize_grads(false);
    context->saved_data["eps"] = eps;
    context->saved_data["round_before_weight"] = round_before_weight;
    context->saved_data["residual"] = residual;
    context->saved_data["weight_type"] = static_cast<int64_t>(w.scalar_type());
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(matrix.operand().scalar_type()));
    const CanonLayer layer{or_undefined(canon), {residual, false}, or_undefined(doc_ids)};
    const RmsNormOptions norm{eps, round_before_weight};
    at::Tensor scales;
    if (x.is_cuda()) {
      scales = at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kFloat));
      norm_canon_forward_cuda(x, norm_w, norm, layer, y, scales);
    } else {
      norm_canon_forward_cpu(x, norm_w, norm, layer, y);
    }
    context->save_for_backward({x, norm_w, canon, doc_ids, matrix.operand(), scales});
    at::Tensor out = at::empty({x.size(0), x.size(1), w.size(0)}, x.options());
    at::Tensor out_rows = rows(out);
    linear_forward(rows(y), matrix.operand(), {}, out_rows);
    return {out, x};
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &norm_w = saved[1], &w = saved[4];
    const at::Tensor grad_residual =
        grad_outputs[1].defined() ? grad_outputs[1].contiguous() : at::Tensor();
    if (!grad_outputs[0].defined()) return {grad_residual, {}, {}, {}, {}, {}, {}, {}, {}};
    const RmsNormOptions norm{context->saved_data["eps"].toDouble(),
                              context->saved_data["round_before_weight"].toBool()};
    const CanonLayer layer{or_undefined(saved[2]),
                           {context->saved_data["residual"].toBool(), false},
                           or_undefined(saved[3])};
    const auto weight_type =
        static_cast<at::ScalarType>(context->saved_data["weight_type"].toInt());
    const at::Tensor grad = as_operand(rows(grad_outputs[0].contiguous()), w.scalar_type());
    at::Tensor y = at::empty(x.sizes(), x.options().dtype(w.scalar_type()));
    at::Tensor grad_w = at::empty(w.sizes(), w.options().dtype(weight_type));
    at::Tensor grad_x = at::empty_like(x), grad_norm_w = at::empty_like(norm_w), grad_canon;
    if (layer.weight.defined()) grad_canon = at::empty_like(layer.weight);
    if (x.is_cuda()) {
      at::Tensor grad_y = at::empty_like(x), grad_y_rows = rows(grad_y);
      linear_backward_x(grad, w, grad_y_rows);
      norm_canon_backward_cuda(x,
                               norm_w,
                               norm,
                               layer,
                               saved[5],
                               grad_y,
                               grad_residual,
                               y,
                               grad_x,
                               grad_norm_w,
                               grad_canon);
      linear_backward_w(grad, rows(y), grad_w);
      return {grad_x, grad_norm_w, {}, {}, grad_canon, {}, {}, grad_w, {}};
    }
    norm_canon_forward_cpu(x, norm_w, norm, layer, y);
    linear_backward_w(grad, rows(y), grad_w);
    // y is no longer needed.
    at::Tensor grad_y = y.scalar_type() == x.scalar_type() ? y : at::empty_like(x);
    at::Tensor grad_y_rows = rows(grad_y);
    linear_backward_x(grad, w, grad_y_rows);
    norm_canon_backward_cpu(
        x, norm_w, norm, layer, grad_y, grad_residual, grad_x, grad_norm_w, grad_canon);
    return {grad_x, grad_norm_w, {}, {}, grad_canon, {}, {}, grad_w, {}};
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
                     (x.is_cpu() || fits_cuda_norm(x, x.size(2))) &&
                     !(canon.weight.defined() && canon.options.silu);
  if (!fused) return {ops::linear(canon_layer(rms_norm(x, norm_w, norm), canon), w), x};
  const variable_list results = NormLinearFunction::apply(x.contiguous(),
                                                          norm_w.contiguous(),
                                                          norm.eps,
                                                          norm.round_before_weight,
                                                          or_empty(canon.weight),
                                                          canon.options.residual,
                                                          or_empty(canon.doc_ids),
                                                          w.stored.contiguous(),
                                                          or_empty(w.rounded));
  return {results[0], results[1]};
}

}  // namespace forge::ops
