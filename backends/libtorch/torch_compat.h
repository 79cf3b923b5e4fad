#pragma once

#include <torch/version.h>

#include <algorithm>
#include <initializer_list>
#include <new>
#include <string>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"

#define FORGE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||        \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

/// The one place that knows which LibTorch has what. Written against 1.13 and 2.11.
namespace forge::torch_compat {

inline bool has_any_of(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) {
    return text.find(part) != std::string::npos;
  });
}

/// Whether memory ran out, the device's or the host's. The allocators throw a type of their own
/// from 1.13 on; libraries with other allocators say it in words.
inline bool is_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&problem)) return true;
  if (dynamic_cast<const std::bad_alloc*>(&problem)) return true;
  if (!dynamic_cast<const c10::Error*>(&problem)) return false;
  return has_any_of(static_cast<const c10::Error&>(problem).what_without_backtrace(),
                    {"out of memory",
                     "not enough memory: you tried to allocate",  // Torch's own on a CPU
                     "CUBLAS_STATUS_ALLOC_FAILED",
                     "CUDNN_STATUS_ALLOC_FAILED"});
}

/// Whether the device is unavailable or was lost, by the words of CUDA's errors. Another process or
/// a fault of the machine is the cause, so a later attempt may succeed.
inline bool is_device_error(const std::exception& problem) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&problem);
  return of_torch && has_any_of(of_torch->what_without_backtrace(),
                                {"busy or unavailable",
                                 "system not yet initialized",
                                 "system has unsupported display driver",
                                 "uncorrectable ECC error",
                                 "uncorrectable NVLink error",
                                 "GPU is lost",
                                 "device is lost",
                                 "no CUDA-capable device is detected",
                                 "driver shutting down",
                                 "MPS server"});
}

inline std::string version() { return TORCH_VERSION; }

/// Makes the library choose algorithms that give the same bits each time, where it has a choice,
/// and refuse operations that have none. It would also fill all new memory, which changes no
/// result.
inline void use_deterministic_algorithms(bool wanted) {
  at::globalContext().setDeterministicAlgorithms(wanted, /*warn_only=*/false);
#if FORGE_TORCH_AT_LEAST(2, 2)
  at::globalContext().setDeterministicFillUninitializedMemory(false);
#endif
}

/// Causal attention by the library's own kernels where it has them; shapes of causal_attention.
/// `hidden`: the keys that a query may not see under that window, bool [T, T]; undefined: later
/// ones.
inline at::Tensor scaled_dot_product_attention(const at::Tensor& q,
                                               const at::Tensor& k,
                                               const at::Tensor& v,
                                               const at::Tensor& hidden = {},
                                               int64_t window = 0) {
#if FORGE_TORCH_AT_LEAST(2, 0)
  const int64_t group = q.size(2) / k.size(2);
  at::Tensor keys = k.transpose(1, 2), values = v.transpose(1, 2);
  if (group > 1) {
    keys = keys.repeat_interleave(group, 1);
    values = values.repeat_interleave(group, 1);
  }
  static_cast<void>(window);
  std::optional<at::Tensor> visible;
  if (hidden.defined()) visible = hidden.logical_not();
  return at::scaled_dot_product_attention(
             q.transpose(1, 2), keys, values, visible, 0.0, /*is_causal=*/!visible)
      .transpose(1, 2)
      .contiguous();
#else
  static_cast<void>(hidden);
  return ops::causal_attention_reference(q, k, v, {}, window);
#endif
}

}  // namespace forge::torch_compat
