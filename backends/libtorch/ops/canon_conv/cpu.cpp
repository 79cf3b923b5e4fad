#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/canon_conv/problem.h"
#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

using canon::Chunk;

template <class T>
void forward(const at::Tensor& x,
             const at::Tensor& w,
             bool add_identity,
             const at::Tensor& doc_ids,
             at::Tensor& y) {
  const canon::Problem<T> p = canon::problem<T>(x, w, add_identity, doc_ids);
  canon::for_each_chunk(p.batch, p.length, [&](const Chunk& chunk) {
    const auto in = p.row_to_read(x.data_ptr<T>(), chunk.row);
    const auto out = p.row_to_write(y.data_ptr<T>(), chunk.row);
    with_simd([&]() FORGE_SIMD_BODY {
      canon::convolve(p, chunk.row, chunk.begin, chunk.end, p.all(), in, out);
    });
  });
}

template <class T>
void backward(const at::Tensor& x,
              const at::Tensor& w,
              bool add_identity,
              const at::Tensor& doc_ids,
              const at::Tensor& grad,
              at::Tensor& grad_x,
              at::Tensor& grad_w) {
  const canon::Problem<T> p = canon::problem<T>(x, w, add_identity, doc_ids);
  const int64_t chunks = canon::chunk_count(p.batch, p.length), size = p.kernel * p.channels;
  std::vector<T> sums(chunks * size, T(0));
  canon::for_each_chunk(p.batch, p.length, [&](const Chunk& chunk) {
    const auto in = p.row_to_read(x.data_ptr<T>(), chunk.row);
    const auto upstream = p.row_to_read(grad.data_ptr<T>(), chunk.row);
    const auto out = p.row_to_write(grad_x.data_ptr<T>(), chunk.row);
    T* own_sums = sums.data() + chunk.index * size;
    with_simd([&]() FORGE_SIMD_BODY {
      canon::accumulate_taps(p, chunk.row, chunk.begin, chunk.end, p.all(), in, upstream, own_sums);
      canon::convolve_transposed(p, chunk.row, chunk.begin, chunk.end, p.all(), upstream, out);
    });
  });
  with_simd([&]() FORGE_SIMD_BODY {
    canon::add_up_taps(p.channels, p.kernel, chunks, sums.data(), grad_w.data_ptr<T>());
  });
}

}  // namespace

void canon_conv_forward_cpu(const at::Tensor& x,
                            const at::Tensor& w,
                            const CanonConvOptions& options,
                            const at::Tensor& doc_ids,
                            at::Tensor& y) {
  const bool add_identity = options.residual && !options.silu;
  with_element_type(x.scalar_type(),
                    [&](auto zero) { forward<decltype(zero)>(x, w, add_identity, doc_ids, y); });
  if (!options.silu) return;
  at::silu_(y);
  if (options.residual) y.add_(x);
}

void canon_conv_backward_cpu(const at::Tensor& x,
                             const at::Tensor& w,
                             const CanonConvOptions& options,
                             const at::Tensor& doc_ids,
                             const at::Tensor& grad_y,
                             at::Tensor& grad_x,
                             at::Tensor& grad_w) {
  const bool add_identity = options.residual && !options.silu;
  at::Tensor grad = grad_y;
  if (options.silu) {
    at::Tensor convolved = at::empty_like(x);
    canon_conv_forward_cpu(x, w, {false, false}, doc_ids, convolved);
    grad = at::silu_backward(grad_y, convolved);
  }
  with_element_type(x.scalar_type(), [&](auto zero) {
    backward<decltype(zero)>(x, w, add_identity, doc_ids, grad, grad_x, grad_w);
  });
  if (options.silu && options.residual) grad_x.add_(grad_y);
}

}  // namespace forge::ops
