#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/torch_precompiled.h"

/// What needs CUDA's own headers. A build without CUDA has no device that is a GPU, so it never
/// calls these functions.
namespace forge::libtorch::cuda {

FORGE_CUDA_ONLY std::string device_name(const at::Device& device);
FORGE_CUDA_ONLY int64_t device_memory_bytes(const at::Device& device);
/// Largest number of bytes that Torch's allocator held since the last reset.
FORGE_CUDA_ONLY int64_t peak_memory_bytes(const at::Device& device);
FORGE_CUDA_ONLY void reset_peak_memory(const at::Device& device);
/// Waits for all work, then returns the unused memory of Torch's allocator to the device.
FORGE_CUDA_ONLY void release_unused_memory(const at::Device& device);
/// Bytes of the device's memory that other processes hold.
FORGE_CUDA_ONLY int64_t memory_held_elsewhere(const at::Device& device);
/// Limits Torch's allocator to `bytes` of the device.
FORGE_CUDA_ONLY void limit_memory(const at::Device& device, int64_t bytes);

/// What a GPU's multiprocessors have counted so far: cycles and nanoseconds, int64 [count, 2] on
/// the host, zeros for those that there are not. Waits for all work.
FORGE_CUDA_ONLY at::Tensor read_clock(const at::Device& device);

/// Makes the device and a stream of its own current on this thread: the default stream cannot be
/// recorded.
FORGE_CUDA_ONLY void use_own_stream(const at::Device& device);

/// Copies numbers to the device through pinned memory, without waiting for it.
class HostCopies {
 public:
  /// Queues a copy to `to`, contiguous and of as many int32; `from` may change at once.
  FORGE_CUDA_ONLY void copy(const int32_t* from, int64_t count, at::Tensor& to);

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< from the first copy on
};

/// Copies numbers of the device to the host, where they are read later: the host does not wait for
/// the newest work.
class LateNumbers {
 public:
  /// Queues a copy of `numbers`, contiguous int32.
  FORGE_CUDA_ONLY void copy(const at::Tensor& numbers);
  /// What was copied before the last time; empty where that was the first. Waits for that copy.
  FORGE_CUDA_ONLY std::vector<int32_t> before_last();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< from the first copy on
};

}  // namespace forge::libtorch::cuda

namespace forge::libtorch {

/// Work that differs from run to run only in the contents of its tensors. On a GPU it is recorded
/// as a CUDA graph and replayed: thousands of small launches become one. On a CPU it just runs.
class StepGraph {
 public:
  /// What to do where the work cannot be recorded. Work of several processes must be recorded by
  /// all of them or by none.
  enum class Otherwise { unrecorded, error };

  explicit StepGraph(const at::Device& device, Otherwise otherwise = Otherwise::unrecorded)
      : on_gpu_(device.is_cuda()), otherwise_(otherwise) {}
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Runs `work` on the current stream. The first runs are not recorded, because they allocate
  /// memory and make the libraries' plans. If recording fails, a note goes to stderr and the work
  /// runs unrecorded from then on, or an Error is thrown. Must be called with the same work each
  /// time.
  /// `relocatable`: a tensor that the work reads and that may move, or an undefined one. After it
  /// has moved, the work is recorded again.
  void run(const std::function<void()>& work, const at::Tensor& relocatable = {}) {
    on_gpu_ ? run_on_gpu(work, relocatable) : work();
  }
  /// Forgets what was recorded and frees its memory: the work is about to change.
  void reset() {
    if (state_) forget();
  }

 private:
  struct State;
  FORGE_CUDA_ONLY void run_on_gpu(const std::function<void()>& work, const at::Tensor& relocatable);
  FORGE_CUDA_ONLY void forget();

  bool on_gpu_;
  Otherwise otherwise_;
  std::shared_ptr<State> state_;  ///< on a GPU, from the first run on
};

}  // namespace forge::libtorch
