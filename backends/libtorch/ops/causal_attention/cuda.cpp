// Attention by the GPU library's own kernels, through Torch, so that no copy of queries, keys and
// values is made: their strides are those of the joint projection.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>

#include "backends/libtorch/model/torch_compat.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

#if FORGE_TORCH_AT_LEAST(2, 11)

namespace {

enum class Kernel { none, cudnn, flash, memory_efficient };

Kernel kernel_for(const at::Tensor& q, const at::Tensor& k) {
  const int64_t head_dim = q.size(3);
  const bool ampere = at::cuda::getCurrentDeviceProperties()->major >= 8;
  if (q.scalar_type() == at::kBFloat16 && ampere && head_dim % 8 == 0) {
    const bool cudnn = at::cuda::getCurrentDeviceProperties()->major >= 9 && head_dim <= 128 &&
                       q.size(2) == k.size(2) && at::globalContext().userEnabledCuDNN() &&
                       !at::globalContext().deterministicAlgorithms();
    if (cudnn) return Kernel::cudnn;
    if (head_dim <= 256) return Kernel::flash;
  }
  const bool fits = q.scalar_type() == at::kFloat && q.size(2) == k.size(2) && head_dim % 4 == 0;
  return fits ? Kernel::memory_efficient : Kernel::none;
}

at::Tensor heads_first(const at::Tensor& x) { return x.transpose(1, 2); }

}  // namespace

bool has_library_attention(const at::Tensor& q, const at::Tensor& k) {
  return q.numel() > 0 && kernel_for(q, k) != Kernel::none;
}

LibraryAttention library_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor queries = heads_first(q), keys = heads_first(k), values = heads_first(v);
  switch (kernel_for(q, k)) {
    case Kernel::cudnn: {
      auto r = at::_scaled_dot_product_cudnn_attention(
          queries, keys, values, {}, /*compute_log_sumexp=*/true, 0.0, /*is_causal=*/true, false);
      return {
          heads_first(std::get<0>(r)).contiguous(), std::get<1>(r), std::get<6>(r), std::get<7>(r)};
    }
    case Kernel::flash: {
      auto r = at::_scaled_dot_product_flash_attention(
          queries, keys, values, 0.0, /*is_causal=*/true, false);
      return {
          heads_first(std::get<0>(r)).contiguous(), std::get<1>(r), std::get<6>(r), std::get<7>(r)};
    }
    case Kernel::memory_efficient: {
      auto r = at::_scaled_dot_product_efficient_attention(
          queries, keys, values, {}, /*compute_log_sumexp=*/true, 0.0, /*is_causal=*/true);
      return {
          heads_first(std::get<0>(r)).contiguous(), std::get<1>(r), std::get<2>(r), std::get<3>(r)};
    }
    case Kernel::none: break;
  }
  TORCH_CHECK(false, "the library has no attention for heads of ", q.size(3));
}

HeadGradients library_attention_backward(const at::Tensor& q,
                                         const at::Tensor& k,
                                         const at::Tensor& v,
                                         const LibraryAttention& saved,
                                         const at::Tensor& grad_out) {
  const at::Tensor queries = heads_first(q), keys = heads_first(k), values = heads_first(v);
  const at::Tensor out = heads_first(saved.out), grad = heads_first(grad_out.view_as(saved.out));
  const int64_t length = q.size(1);
  const auto of = [](const auto& grads) {
    return HeadGradients{heads_first(std::get<0>(grads)).contiguous(),
                         heads_first(std::get<1>(grads)).contiguous(),
                         heads_first(std::get<2>(grads)).contiguous()};
  };
  switch (kernel_for(q, k)) {
    case Kernel::cudnn:
      return of(at::_scaled_dot_product_cudnn_attention_backward(grad,
                                                                 queries,
                                                                 keys,
                                                                 values,
                                                                 out,
                                                                 saved.log_sum_exp,
                                                                 saved.seed,
                                                                 saved.offset,
                                                                 {},
                                                                 {},
                                                                 {},
                                                                 length,
                                                                 length,
                                                                 0.0,
                                                                 /*is_causal=*/true));
    case Kernel::flash:
      return of(at::_scaled_dot_product_flash_attention_backward(grad,
                                                                 queries,
                                                                 keys,
                                                                 values,
                                                                 out,
                                                                 saved.log_sum_exp,
                                                                 {},
                                                                 {},
                                                                 length,
                                                                 length,
                                                                 0.0,
                                                                 /*is_causal=*/true,
                                                                 saved.seed,
                                                                 saved.offset));
    case Kernel::memory_efficient:
      return of(at::_scaled_dot_product_efficient_attention_backward(grad,
                                                                     queries,
                                                                     keys,
                                                                     values,
                                                                     {},
                                                                     out,
                                                                     saved.log_sum_exp,
                                                                     saved.seed,
                                                                     saved.offset,
                                                                     0.0,
                                                                     {true, true, true, false},
                                                                     /*is_causal=*/true));
    case Kernel::none: break;
  }
  TORCH_CHECK(false, "the library has no attention for heads of ", q.size(3));
}

#else

bool has_library_attention(const at::Tensor&, const at::Tensor&) { return false; }

LibraryAttention library_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  TORCH_CHECK(false, "this LibTorch has no attention kernels that forge knows");
}

HeadGradients library_attention_backward(const at::Tensor&,
                                         const at::Tensor&,
                                         const at::Tensor&,
                                         const LibraryAttention&,
                                         const at::Tensor&) {
  TORCH_CHECK(false, "this LibTorch has no attention kernels that forge knows");
}

#endif

}  // namespace forge::ops
