#include "backends/libtorch/ops/self_attention/cuda.h"

#include <ATen/cuda/CUDAContext.h>

#include "backends/libtorch/ops/canon_conv/cuda_tensors.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"

namespace forge::ops {
namespace {

cuda::HeadShape head_shape(const RotaryTable& rotary, const HeadLayout& layout) {
  return {static_cast<int>(layout.heads + layout.kv_heads),
          static_cast<int>(layout.heads + 2 * layout.kv_heads),
          static_cast<int>(layout.head_dim),
          rotary.cos.defined() ? static_cast<int>(2 * rotary.cos.size(1)) : 0,
          rotary.interleaved,
          cuda::read<float>(rotary.cos),
          cuda::read<float>(rotary.sin)};
}

template <class T>
cuda::CanonRope<T> arguments(const at::Tensor& qkv, const CanonRope& rope) {
  const HeadNorms& norms = rope.norms;
  return {cuda::canon_input<T>(qkv, rope.canon),
          head_shape(rope.rotary, rope.layout),
          {static_cast<int>(rope.layout.heads),
           cuda::read<float>(norms.q),
           cuda::read<float>(norms.k),
           static_cast<float>(norms.options.eps),
           norms.options.round_before_weight}};
}

}  // namespace

bool has_canon_rope_cuda(const CanonRope& rope) {
  const cuda::HeadShape heads = head_shape(rope.rotary, rope.layout);
  const at::Tensor &cos = rope.rotary.cos, &norm = rope.norms.q;
  if (cos.defined() && cos.scalar_type() != at::kFloat) return false;
  if (!cuda::rope_is_supported(heads)) return false;
  return !norm.defined() ||
         (norm.scalar_type() == at::kFloat && cuda::head_norm_is_supported(heads));
}

bool keeps_heads_cuda(const at::Tensor& heads) {
  // A share that even a hundred layers together do not feel.
  constexpr size_t share = 2048;
  return heads.nbytes() <= at::cuda::getCurrentDeviceProperties()->totalGlobalMem / share;
}

void canon_rope_forward_cuda(const at::Tensor& qkv, const CanonRope& rope, at::Tensor& heads) {
  cuda::with_type(qkv, [&](auto type) {
    using T = decltype(type);
    cuda::canon_rope_forward(
        arguments<T>(qkv, rope), cuda::write<T>(heads), cuda::current_stream());
  });
}

CanonRopeGradients canon_rope_backward_cuda(const at::Tensor& qkv,
                                            const CanonRope& rope,
                                            const Heads& grads) {
  const HeadLayout& layout = rope.layout;
  const int64_t q_channels = layout.heads * layout.head_dim;
  const int64_t kv_channels = layout.kv_heads * layout.head_dim;
  CanonRopeGradients out;
  out.qkv = at::empty_like(qkv);
  cuda::BlockSums tap_sums(qkv, cuda::taps_of(rope.canon) * qkv.size(2));
  cuda::BlockSums norm_sums(qkv, qkv.size(2));
  cuda::with_type(qkv, [&](auto type) {
    using T = decltype(type);
    const cuda::HeadGradientArgs<T> of_heads{cuda::read<T>(grads.q),
                                             cuda::read<T>(grads.k),
                                             cuda::read<T>(grads.v),
                                             q_channels,
                                             kv_channels};
    cuda::canon_rope_backward(arguments<T>(qkv, rope),
                              of_heads,
                              cuda::write<T>(out.qkv),
                              tap_sums.allocate(),
                              norm_sums.allocate(),
                              cuda::current_stream());
  });
  if (rope.canon.weight.defined()) out.canon = tap_sums.total().view(rope.canon.weight.sizes());
  if (rope.norms.defined()) {
    const at::Tensor sums = norm_sums.total();
    const auto over_heads = [&](int64_t first, int64_t heads) {
      return sums.narrow(0, first, heads * layout.head_dim).view({heads, -1}).sum(0);
    };
    out.q_norm = over_heads(0, layout.heads);
    out.k_norm = over_heads(q_channels, layout.kv_heads);
  }
  return out;
}

}  // namespace forge::ops
