#include "backends/libtorch/ops/canon_conv/canon_conv.h"

#include "backends/libtorch/ops/canon_conv/cpu.h"
#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor canon_conv_reference(const at::Tensor& x,
                                const at::Tensor& w,
                                const CanonConvOptions& options,
                                const at::Tensor& doc_ids) {
  const int64_t length = x.size(1);
  const at::ScalarType type = at::promote_types(x.scalar_type(), w.scalar_type());
  const int64_t kernel = w.size(2);
  at::Tensor convolved = at::zeros_like(x, x.options().dtype(type));
  for (int64_t tap = 0; tap < std::min(kernel, length); ++tap) {
    const int64_t kept = length - tap;
    at::Tensor past = x.narrow(1, 0, kept).to(type);  // token t - tap, for t = tap …
    if (doc_ids.defined()) {
      const at::Tensor same = doc_ids.narrow(1, 0, kept).eq(doc_ids.narrow(1, tap, kept));
      past = past * same.unsqueeze(-1).to(type);
    }
    const at::Tensor weight = w.select(2, kernel - 1 - tap).squeeze(1);
    convolved = convolved + at::constant_pad_nd(past * weight, {0, 0, tap, 0});
  }
  if (options.silu) convolved = at::silu(convolved);
  return (options.residual ? x + convolved : convolved).to(x.scalar_type());
}

at::Tensor canon_layer_reference(const at::Tensor& x, const CanonLayer& layer) {
  if (!layer.weight.defined()) return x;
  return canon_conv_reference(x, layer.weight, layer.options, layer.doc_ids);
}

CanonLayer contiguous(const CanonLayer& layer) {
  return {contiguous(layer.weight), layer.options, contiguous(layer.doc_ids)};
}

namespace {

using canon::Chunk;

/// A residual without silu before it is a part of the taps.
CanonLayer linear_part(const CanonLayer& layer) {
  const auto [residual, silu] = layer.options;
  return {layer.weight, {residual && !silu, false}, layer.doc_ids};
}

}  // namespace

void canon_conv_forward_cpu(const at::Tensor& x, const CanonLayer& layer, at::Tensor& y) {
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Convolution<T> p = canon::convolution<T>(x, linear_part(layer));
    canon::for_each_chunk<T>(p.batch, p.length, 0, [&](const Chunk& chunk, T*) {
      const auto in = p.row_to_read(x, chunk);
      const auto out = p.template row_to_write<T>(y, chunk);
      with_simd([&]() FORGE_SIMD_BODY { canon::convolve(p, chunk, p.all(), in, out); });
    });
  });
  if (!layer.options.silu) return;
  at::silu_(y);
  if (layer.options.residual) y.add_(x);
}

void canon_conv_backward_cpu(const at::Tensor& x,
                             const CanonLayer& layer,
                             const at::Tensor& grad_y,
                             at::Tensor& grad_x,
                             at::Tensor& grad_w) {
  at::Tensor grad = grad_y;
  if (layer.options.silu) {
    at::Tensor convolved = at::empty_like(x);
    canon_conv_forward_cpu(x, {layer.weight, {false, false}, layer.doc_ids}, convolved);
    grad = at::silu_backward(grad_y, convolved);
  }
  with_element_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const canon::Convolution<T> p = canon::convolution<T>(x, linear_part(layer));
    const int64_t chunks = p.chunk_count(), size = p.kernel * p.channels;
    std::vector<T> sums(chunks * size, T(0));
    canon::for_each_chunk<T>(p.batch, p.length, 0, [&](const Chunk& chunk, T*) {
      const auto in = p.row_to_read(x, chunk);
      const auto upstream = p.row_to_read(grad, chunk);
      const auto out = p.template row_to_write<T>(grad_x, chunk);
      T* tap_sums = sums.data() + chunk.index * size;
      with_simd([&]() FORGE_SIMD_BODY {
        canon::accumulate_taps(p, chunk, p.all(), in, upstream, tap_sums);
        canon::convolve_transposed(p, chunk, p.all(), upstream, out);
      });
    });
    with_simd([&]() FORGE_SIMD_BODY {
      canon::add_up_taps(p.channels, p.kernel, chunks, sums.data(), grad_w.data_ptr<T>());
    });
  });
  if (layer.options.silu && layer.options.residual) grad_x.add_(grad_y);
}

namespace {

struct CanonConv : public torch::autograd::Function<CanonConv> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            CanonLayer layer) {
    context->save_for_backward({x, w});
    keep_arguments(context, layer);
    layer.weight = w;
    at::Tensor y = at::empty_like(x);
    x.is_cuda() ? canon_conv_forward_cuda(x, layer, y) : canon_conv_forward_cpu(x, layer, y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    auto layer = kept_arguments<CanonLayer>(context);
    layer.weight = saved[1];
    at::Tensor grad_x = at::empty_like(saved[0]), grad_w = at::empty_like(saved[1]);
    const auto run = saved[0].is_cuda() ? canon_conv_backward_cuda : canon_conv_backward_cpu;
    run(saved[0], layer, grad_outputs[0].contiguous(), grad_x, grad_w);
    return {grad_x, grad_w, {}};
  }
};

}  // namespace

void check_canon_shapes(const at::Tensor& x, const at::Tensor& w, const at::Tensor& doc_ids) {
  TORCH_CHECK(x.dim() == 3, "canon_conv: x must be [batch, tokens, channels], is ", x.sizes());
  TORCH_CHECK(w.dim() == 3 && w.size(0) == x.size(2) && w.size(1) == 1,
              "canon_conv: w must be [",
              x.size(2),
              ", 1, kernel], is ",
              w.sizes());
  TORCH_CHECK(
      w.size(2) >= 2 && w.size(2) <= 4, "canon_conv: the kernel has 2 to 4 taps, not ", w.size(2));
  TORCH_CHECK(w.scalar_type() == x.scalar_type() || w.scalar_type() == small_weight_type(x),
              "canon_conv: x is ",
              x.scalar_type(),
              " but w is ",
              w.scalar_type());
  if (!doc_ids.defined()) return;
  const at::IntArrayRef tokens = x.sizes().slice(0, 2);
  TORCH_CHECK(doc_ids.sizes() == tokens && doc_ids.scalar_type() == at::kInt,
              "canon_conv: doc_ids must be int32 ",
              tokens);
}

at::Tensor canon_conv(const at::Tensor& x,
                      const at::Tensor& w,
                      const CanonConvOptions& options,
                      const at::Tensor& doc_ids) {
  check_canon_shapes(x, w, doc_ids);
  const bool fused =
      w.scalar_type() == small_weight_type(x) &&
      (has_cpu_kernel(x) || (has_cuda_kernel(x) && is_vector_aligned(x) && !options.silu));
  if (!fused) return canon_conv_reference(x, w, options, doc_ids);
  return CanonConv::apply(
      whole_vectors(x), w.contiguous(), CanonLayer{{}, options, contiguous(doc_ids)});
}

at::Tensor canon_layer(const at::Tensor& x, const CanonLayer& layer) {
  return layer.weight.defined() ? canon_conv(x, layer.weight, layer.options, layer.doc_ids) : x;
}

}  // namespace forge::ops
