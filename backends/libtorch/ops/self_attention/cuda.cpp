#include "backends/libtorch/ops/self_attention/cuda.h"

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

/// The convolution alone, over channels that are no heads.
constexpr cuda::Heads no_heads{0, 0, 0, 0, false, nullptr, nullptr};

template <class T>
cuda::PrepareHeads<T> arguments(const at::Tensor& x,
                                const CanonLayer& canon,
                                const cuda::Heads& heads) {
  return {cuda::sequences_of(x, canon),
          cuda::taps_of(canon),
          canon.options.residual,
          cuda::read<T>(x),
          cuda::read<float>(canon.weight),
          heads};
}

void forward(const at::Tensor& x,
             const CanonLayer& canon,
             const cuda::Heads& heads,
             at::Tensor& y) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::prepare_heads(arguments<T>(x, canon, heads), cuda::write<T>(y), cuda::current_stream());
  });
}

void backward(const at::Tensor& x,
              const CanonLayer& canon,
              const cuda::Heads& heads,
              const at::Tensor& grad_q,
              const at::Tensor& grad_k,
              const at::Tensor& grad_v,
              int64_t q_channels,
              int64_t kv_channels,
              at::Tensor& grad_x,
              at::Tensor& grad_canon) {
  const int taps = cuda::taps_of(canon);
  const int64_t rows = cuda::prepare_heads_partial_rows(cuda::sequences_of(x, canon));
  const int64_t columns = taps * x.size(2);
  const at::Tensor partial =
      taps > 0 ? at::empty({rows, columns}, x.options().dtype(at::kFloat)) : at::Tensor();
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    const cuda::HeadGradientsOf<T> grads{cuda::read<T>(grad_q),
                                         cuda::read<T>(grad_k),
                                         cuda::read<T>(grad_v),
                                         q_channels,
                                         kv_channels};
    cuda::prepare_heads_backward(arguments<T>(x, canon, heads),
                                 grads,
                                 cuda::write<T>(grad_x),
                                 cuda::write<float>(partial),
                                 cuda::current_stream());
  });
  if (taps == 0) return;
  if (x.numel() == 0) {
    grad_canon.zero_();
    return;
  }
  cuda::add_rows(cuda::read<float>(partial),
                 rows,
                 columns,
                 cuda::write<float>(grad_canon),
                 cuda::current_stream());
}

}  // namespace

bool can_turn_heads_cuda(const RotaryTable& rotary, const HeadLayout& layout) {
  if (rotary.cos.defined() && rotary.cos.scalar_type() != at::kFloat) return false;
  return cuda::heads_fit(heads_of(rotary, layout));
}

void prepare_heads_cuda(const at::Tensor& qkv,
                        const CanonLayer& canon,
                        const RotaryTable& rotary,
                        const HeadLayout& layout,
                        at::Tensor& prepared) {
  forward(qkv, canon, heads_of(rotary, layout), prepared);
}

void prepare_heads_backward_cuda(const at::Tensor& qkv,
                                 const CanonLayer& canon,
                                 const RotaryTable& rotary,
                                 const HeadLayout& layout,
                                 const at::Tensor& grad_q,
                                 const at::Tensor& grad_k,
                                 const at::Tensor& grad_v,
                                 at::Tensor& grad_qkv,
                                 at::Tensor& grad_canon) {
  backward(qkv,
           canon,
           heads_of(rotary, layout),
           grad_q,
           grad_k,
           grad_v,
           layout.heads * layout.head_dim,
           layout.kv_heads * layout.head_dim,
           grad_qkv,
           grad_canon);
}

void canon_conv_forward_cuda(const at::Tensor& x,
                             const at::Tensor& w,
                             const CanonConvOptions& options,
                             const at::Tensor& doc_ids,
                             at::Tensor& y) {
  forward(x, {w, options, doc_ids}, no_heads, y);
}

void canon_conv_backward_cuda(const at::Tensor& x,
                              const at::Tensor& w,
                              const CanonConvOptions& options,
                              const at::Tensor& doc_ids,
                              const at::Tensor& grad_y,
                              at::Tensor& grad_x,
                              at::Tensor& grad_w) {
  backward(x, {w, options, doc_ids}, no_heads, grad_y, {}, {}, x.size(2), 0, grad_x, grad_w);
}

}  // namespace forge::ops
