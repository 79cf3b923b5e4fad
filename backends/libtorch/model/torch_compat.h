#pragma once

#include <torch/version.h>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"

#define FORGE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||        \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

/// The one place that knows which LibTorch has what. Written against 1.13 and 2.11.
namespace forge::torch_compat {

inline std::string version() { return TORCH_VERSION; }

/// Makes the library choose algorithms that give the same bits each time, where it has a choice, and
/// refuse operations that have none. It would also fill all new memory, which changes no result.
inline void use_deterministic_algorithms(bool wanted) {
  at::globalContext().setDeterministicAlgorithms(wanted, /*warn_only=*/false);
#if FORGE_TORCH_AT_LEAST(2, 2)
  at::globalContext().setDeterministicFillUninitializedMemory(false);
#endif
}

/// Causal attention by the library's own kernels where it has them; shapes of causal_attention.
inline at::Tensor scaled_dot_product_attention(const at::Tensor& q,
                                               const at::Tensor& k,
                                               const at::Tensor& v) {
#if FORGE_TORCH_AT_LEAST(2, 0)
  const int64_t group = q.size(2) / k.size(2);
  at::Tensor keys = k.transpose(1, 2), values = v.transpose(1, 2);
  if (group > 1) {
    keys = keys.repeat_interleave(group, 1);
    values = values.repeat_interleave(group, 1);
  }
  return at::scaled_dot_product_attention(
             q.transpose(1, 2), keys, values, {}, 0.0, /*is_causal=*/true)
      .transpose(1, 2)
      .contiguous();
#else
  return ops::causal_attention_reference(q, k, v);
#endif
}

}  // namespace forge::torch_compat
