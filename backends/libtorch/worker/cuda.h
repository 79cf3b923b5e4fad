#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backends/libtorch/torch_precompiled.h"

/// What needs CUDA's own headers: cuda.cpp where LibTorch has CUDA, no_cuda.cpp elsewhere, so that
/// no other file asks which one it is.
namespace forge::libtorch::cuda {

std::string device_name(int index);
int64_t device_memory_bytes(int index);
/// Most bytes that Torch's allocator had taken from the device at once since the last reset.
int64_t peak_memory_bytes(int index);
void reset_peak_memory(int index);
/// Gives back to the device what Torch's allocator holds and nobody uses, after all work is done.
void give_back_unused_memory(int index);
/// What other processes hold of the device's memory.
int64_t memory_held_elsewhere(int index);
/// Torch's allocator takes no more of the device than that.
void limit_memory(int index, int64_t bytes);

/// Makes the device and a stream of it other than the default one current on this thread: the
/// default one cannot be recorded.
void use_own_stream(int index);

/// Copies numbers to the device without waiting for it, through memory that the device can read by
/// itself.
class HostCopies {
 public:
  HostCopies();
  ~HostCopies();
  /// Queues a copy to `to`, contiguous and of as many int32; `from` may change at once.
  void copy(const int32_t* from, int64_t count, at::Tensor& to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forge::libtorch::cuda

namespace forge::libtorch {

/// Work that is the same each time but for the contents of its tensors. On a GPU it is recorded as
/// a CUDA graph and replayed: thousands of small launches become one, and nothing has to be
/// compiled. On a CPU it just runs.
class StepGraph {
 public:
  explicit StepGraph(const at::Device& device);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Runs `work` on the current stream. The first times it runs as it is, so that memory and the
  /// libraries' plans are there; then it is recorded. Where that fails, that is said once on stderr
  /// and the work goes on running as it is. Must be called with the same work each time.
  /// `relocatable`: a tensor that the work reads and that may move, or an undefined one. Where it
  /// has moved, the work is recorded again.
  void run(const std::function<void()>& work, const at::Tensor& relocatable = {});
  /// Forgets what was recorded and frees its memory: the work is about to change.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forge::libtorch
