#include "backends/libtorch/ops/canon_conv/problem.h"
#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rms_norm/kernels.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
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

}  // namespace forge::ops
