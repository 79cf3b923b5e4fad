#include "backends/libtorch/ops/self_attention/cuda.h"

#include <ATen/cuda/CUDAContext.h>

#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"

namespace forge::ops {
namespace {

cuda::Heads heads_of(const RotaryTable& rotary, const HeadLayout& layout) {
  const bool turns = rotary.cos.defined();
  return {static_cast<int>(layout.heads + layout.kv_heads),
          static_cast<int>(layout.heads + 2 * layout.kv_heads),
          static_cast<int>(layout.head_dim),
          turns ? static_cast<int>(2 * rotary.cos.size(1)) : 0,
          rotary.interleaved,
          cuda::read<float>(rotary.cos),
          cuda::read<float>(rotary.sin)};
}

cuda::HeadNorms norms_of(const HeadNorms& norms, const HeadLayout& layout) {
  return {static_cast<int>(layout.heads),
          cuda::read<float>(norms.q),
          cuda::read<float>(norms.k),
          static_cast<float>(norms.options.eps),
          norms.options.round_before_weight};
}

/// The convolution alone, over channels that are no heads.
constexpr cuda::Heads no_heads{0, 0, 0, 0, false, nullptr, nullptr};
constexpr cuda::HeadNorms no_norms{0, nullptr, nullptr, 0, false};

template <class T>
cuda::PrepareHeads<T> arguments(const at::Tensor& x,
                                const CanonLayer& canon,
                                const cuda::Heads& heads,
                                const cuda::HeadNorms& norms) {
  return {cuda::sequences_of(x, canon),
          cuda::taps_of(canon),
          canon.options.residual,
          cuda::read<T>(x),
          cuda::read<float>(canon.weight),
          heads,
          norms};
}

void forward(const at::Tensor& x,
             const CanonLayer& canon,
             const cuda::Heads& heads,
             const cuda::HeadNorms& norms,
             at::Tensor& y) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::prepare_heads(
        arguments<T>(x, canon, heads, norms), cuda::write<T>(y), cuda::current_stream());
  });
}

/// Gradients of weights: [C, taps] and, of the norms' outputs times their inputs, [C].
struct WeightSums {
  at::Tensor taps, norms;
};

WeightSums backward(const at::Tensor& x,
                    const CanonLayer& canon,
                    const cuda::Heads& heads,
                    const cuda::HeadNorms& norms,
                    const PreparedGradients& grads,
                    int64_t q_channels,
                    int64_t kv_channels,
                    at::Tensor& grad_x) {
  const int taps = cuda::taps_of(canon);
  at::Tensor of_taps, of_norms;
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    const cuda::PrepareHeads<T> in = arguments<T>(x, canon, heads, norms);
    const int64_t rows = cuda::prepare_heads_partial_rows(in);
    if (taps > 0) of_taps = cuda::rows_of_sums(x, rows, taps * x.size(2));
    if (norms.q) of_norms = cuda::rows_of_sums(x, rows, x.size(2));
    const cuda::HeadGradientsOf<T> of_heads{cuda::read<T>(grads.q),
                                            cuda::read<T>(grads.k),
                                            cuda::read<T>(grads.v),
                                            q_channels,
                                            kv_channels};
    cuda::prepare_heads_backward(in,
                                 of_heads,
                                 cuda::write<T>(grad_x),
                                 cuda::write<float>(of_taps),
                                 cuda::write<float>(of_norms),
                                 cuda::current_stream());
  });
  return {taps > 0 ? cuda::sum_of_rows(of_taps) : at::Tensor(),
          norms.q ? cuda::sum_of_rows(of_norms) : at::Tensor()};
}

}  // namespace

bool can_prepare_heads_cuda(const RotaryTable& rotary,
                            const HeadLayout& layout,
                            const HeadNorms& norms) {
  const cuda::Heads heads = heads_of(rotary, layout);
  if (rotary.cos.defined() && rotary.cos.scalar_type() != at::kFloat) return false;
  if (!cuda::heads_fit(heads)) return false;
  if (!norms.defined()) return true;
  return norms.q.scalar_type() == at::kFloat && cuda::heads_can_be_normalised(heads);
}

void prepare_heads_cuda(const at::Tensor& qkv,
                        const CanonLayer& canon,
                        const RotaryTable& rotary,
                        const HeadLayout& layout,
                        const HeadNorms& norms,
                        at::Tensor& prepared) {
  forward(qkv, canon, heads_of(rotary, layout), norms_of(norms, layout), prepared);
}

bool keeps_prepared_heads_cuda(const at::Tensor& prepared) {
  // A share that even a hundred layers together do not feel.
  constexpr size_t share = 2048;
  return prepared.nbytes() <= at::cuda::getCurrentDeviceProperties()->totalGlobalMem / share;
}

SourceGradients prepare_heads_backward_cuda(const at::Tensor& qkv,
                                            const CanonLayer& canon,
                                            const RotaryTable& rotary,
                                            const HeadLayout& layout,
                                            const HeadNorms& norms,
                                            const PreparedGradients& grads) {
  const int64_t q_channels = layout.heads * layout.head_dim;
  const int64_t kv_channels = layout.kv_heads * layout.head_dim;
  SourceGradients out;
  out.qkv = at::empty_like(qkv);
  const WeightSums sums = backward(qkv,
                                   canon,
                                   heads_of(rotary, layout),
                                   norms_of(norms, layout),
                                   grads,
                                   q_channels,
                                   kv_channels,
                                   out.qkv);
  if (canon.weight.defined()) out.canon = sums.taps.view(canon.weight.sizes());
  if (norms.defined()) {
    const auto over_heads = [&](int64_t first, int64_t heads) {
      return sums.norms.narrow(0, first, heads * layout.head_dim).view({heads, -1}).sum(0);
    };
    out.q_norm = over_heads(0, layout.heads);
    out.k_norm = over_heads(q_channels, layout.kv_heads);
  }
  return out;
}

void canon_conv_forward_cuda(const at::Tensor& x,
                             const at::Tensor& w,
                             const CanonConvOptions& options,
                             const at::Tensor& doc_ids,
                             at::Tensor& y) {
  forward(x, {w, options, doc_ids}, no_heads, no_norms, y);
}

void canon_conv_backward_cuda(const at::Tensor& x,
                              const at::Tensor& w,
                              const CanonConvOptions& options,
                              const at::Tensor& doc_ids,
                              const at::Tensor& grad_y,
                              at::Tensor& grad_x,
                              at::Tensor& grad_w) {
  const WeightSums sums = backward(
      x, {w, options, doc_ids}, no_heads, no_norms, {grad_y, {}, {}}, x.size(2), 0, grad_x);
  grad_w = sums.taps.view(w.sizes());
}

}  // namespace forge::ops
