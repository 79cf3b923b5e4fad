// Attention by the GPU library's own kernels, through Torch, so that no copy of queries, keys and
// values is made: their strides are those of the joint projection.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

#if FORGE_TORCH_AT_LEAST(2, 11)

namespace {

enum class Kernel { none, cudnn, flash, flash_of_documents, memory_efficient };

// Sequences are a dimension of the kernels' grids.
constexpr int64_t most_sequences = 65535;

Kernel kernel_for(const Heads& heads, const Documents& documents) {
  const at::Tensor &q = heads.q, &k = heads.k, &starts = documents.starts;
  const int64_t head_dim = q.size(3);
  const bool ampere = at::cuda::getCurrentDeviceProperties()->major >= 8;
  if (starts.defined()) {
    // With sequences of at most one token the library expects as many of them as there are tokens.
    const bool fits = q.scalar_type() == at::kBFloat16 && ampere && head_dim % 8 == 0 &&
                      head_dim <= 256 && q.size(1) > 1 && starts.size(0) - 1 <= most_sequences;
    return fits ? Kernel::flash_of_documents : Kernel::none;
  }
  if (q.scalar_type() == at::kBFloat16 && ampere && head_dim % 8 == 0) {
    // cuDNN has no backward pass for single tokens.
    const bool cudnn = q.size(1) > 1 && at::cuda::getCurrentDeviceProperties()->major >= 9 &&
                       head_dim <= 128 && q.size(2) == k.size(2) &&
                       at::globalContext().userEnabledCuDNN() &&
                       !at::globalContext().deterministicAlgorithms();
    if (cudnn) return Kernel::cudnn;
    if (head_dim <= 256) return Kernel::flash;
  }
  const bool fits = q.scalar_type() == at::kFloat && q.size(2) == k.size(2) && head_dim % 4 == 0;
  return fits ? Kernel::memory_efficient : Kernel::none;
}

at::Tensor heads_first(const at::Tensor& x) { return x.transpose(1, 2); }

/// How many tokens before itself a token sees, where there is a window.
std::optional<int64_t> tokens_before(const Documents& documents) {
  if (documents.window == 0) return std::nullopt;
  return documents.window - 1;
}

/// Rows one after another, [B * T, heads, D]: no copy where x is a part of a joint projection.
at::Tensor all_tokens(const at::Tensor& x) { return x.flatten(0, 1); }

}  // namespace

bool has_library_attention(const Heads& heads, const Documents& documents) {
  if (heads.q.numel() == 0 || (documents.defined() && !documents.starts.defined())) return false;
  return kernel_for(heads, documents) != Kernel::none;
}

LibraryAttention library_attention(const Heads& heads, const Documents& documents) {
  const auto& [q, k, v] = heads;
  const at::Tensor queries = heads_first(q), keys = heads_first(k), values = heads_first(v);
  switch (kernel_for(heads, documents)) {
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
    case Kernel::flash_of_documents: {
      auto r = at::_flash_attention_forward(all_tokens(q),
                                            all_tokens(k),
                                            all_tokens(v),
                                            documents.starts,
                                            documents.starts,
                                            q.size(1),
                                            q.size(1),
                                            0.0,
                                            /*is_causal=*/true,
                                            false,
                                            std::nullopt,
                                            tokens_before(documents),
                                            std::nullopt);
      return {std::get<0>(r).contiguous().view(q.sizes()),
              std::get<1>(r),
              std::get<2>(r),
              std::get<3>(r)};
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

Heads library_attention_backward(const Heads& heads,
                                 const Documents& documents,
                                 const LibraryAttention& saved,
                                 const at::Tensor& grad_out) {
  const auto& [q, k, v] = heads;
  const at::Tensor queries = heads_first(q), keys = heads_first(k), values = heads_first(v);
  const at::Tensor out = heads_first(saved.out), grad = heads_first(grad_out.view_as(saved.out));
  const int64_t length = q.size(1);
  const auto of = [](const auto& grads) {
    return Heads{heads_first(std::get<0>(grads)).contiguous(),
                 heads_first(std::get<1>(grads)).contiguous(),
                 heads_first(std::get<2>(grads)).contiguous()};
  };
  switch (kernel_for(heads, documents)) {
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
    case Kernel::flash_of_documents: {
      const auto grads = at::_flash_attention_backward(all_tokens(grad_out.view_as(saved.out)),
                                                       all_tokens(q),
                                                       all_tokens(k),
                                                       all_tokens(v),
                                                       all_tokens(saved.out),
                                                       saved.log_sum_exp,
                                                       documents.starts,
                                                       documents.starts,
                                                       length,
                                                       length,
                                                       0.0,
                                                       /*is_causal=*/true,
                                                       saved.seed,
                                                       saved.offset,
                                                       std::nullopt,
                                                       tokens_before(documents),
                                                       std::nullopt);
      return {std::get<0>(grads).contiguous().view(q.sizes()),
              std::get<1>(grads).contiguous().view(k.sizes()),
              std::get<2>(grads).contiguous().view(v.sizes())};
    }
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

bool has_library_attention(const Heads&, const Documents&) { return false; }

LibraryAttention library_attention(const Heads&, const Documents&) {
  TORCH_CHECK(false, "this LibTorch has no attention kernels that forge knows");
}

Heads library_attention_backward(const Heads&,
                                 const Documents&,
                                 const LibraryAttention&,
                                 const at::Tensor&) {
  TORCH_CHECK(false, "this LibTorch has no attention kernels that forge knows");
}

#endif

}  // namespace forge::ops
