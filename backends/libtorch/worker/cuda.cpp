#include "backends/libtorch/worker/cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "backends/libtorch/ops/common/clock.h"
#include "core/base/error.h"

namespace forge::libtorch::cuda {
namespace {

c10::DeviceIndex index_of(const at::Device& device) {
  return device.has_index() ? device.index() : c10::DeviceIndex{0};
}

}  // namespace

std::string device_name(const at::Device& device) {
  return at::cuda::getDeviceProperties(index_of(device))->name;
}

int64_t device_memory_bytes(const at::Device& device) {
  return static_cast<int64_t>(at::cuda::getDeviceProperties(index_of(device))->totalGlobalMem);
}

int64_t peak_memory_bytes(const at::Device& device) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(index_of(device)).reserved_bytes[0].peak;
}

void reset_peak_memory(const at::Device& device) {
  c10::cuda::CUDACachingAllocator::resetPeakStats(index_of(device));
}

void release_unused_memory(const at::Device& device) {
  at::cuda::getCurrentCUDAStream(index_of(device)).synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
}

int64_t memory_held_elsewhere(const at::Device& device) {
  // CUDA and the libraries hold an unknown amount for this process, less than this.
  constexpr int64_t overhead = int64_t{2} << 30;
  size_t free = 0, total = 0;
  if (::cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  const int64_t own =
      c10::cuda::CUDACachingAllocator::getDeviceStats(index_of(device)).reserved_bytes[0].current;
  const int64_t held = static_cast<int64_t>(total) - static_cast<int64_t>(free);
  return std::max<int64_t>(0, held - own - overhead);
}

void limit_memory(const at::Device& device, int64_t bytes) {
  // The allocator knows its devices from the first tensor on.
  static_cast<void>(at::empty({0}, at::TensorOptions(device)));
  const double share = double(bytes) / double(device_memory_bytes(device));
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(share, 1.0), index_of(device));
}

at::Tensor read_clock(const at::Device& device) {
  const c10::cuda::CUDAStream stream = at::cuda::getCurrentCUDAStream(index_of(device));
  const at::Tensor readings =
      at::zeros({ops::cuda::most_multiprocessors, 2}, at::TensorOptions(device).dtype(at::kLong));
  ops::cuda::read_clock(static_cast<int64_t*>(readings.data_ptr()), stream);
  return readings.cpu();
}

void use_own_stream(const at::Device& device) {
  const c10::DeviceIndex index = index_of(device);
  c10::cuda::set_device(index);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index));
}

/// Buffers that are used in turn: a copy out of one may be under way while the next is filled.
struct HostCopies::State {
  struct Buffer {
    at::Tensor memory;
    at::cuda::CUDAEvent copied;
    bool in_use = false;
  };
  std::array<Buffer, 16> buffers;
  size_t next = 0;
};

void HostCopies::copy(const int32_t* from, int64_t count, at::Tensor& to) {
  if (!state_) state_ = std::make_shared<State>();
  State::Buffer& buffer = state_->buffers[state_->next++ % state_->buffers.size()];
  if (buffer.in_use) buffer.copied.synchronize();
  if (!buffer.memory.defined() || buffer.memory.numel() != count)
    buffer.memory = at::empty({count}, at::TensorOptions(at::kInt).pinned_memory(true));
  std::memcpy(buffer.memory.data_ptr(), from, sizeof(int32_t) * static_cast<size_t>(count));
  to.view({-1}).copy_(buffer.memory, /*non_blocking=*/true);
  buffer.copied.record();
  buffer.in_use = true;
}

struct LateNumbers::State {
  struct Copy {
    at::Tensor memory;
    at::cuda::CUDAEvent copied;
  };
  std::array<Copy, 2> copies;
  size_t count = 0;
};

void LateNumbers::copy(const at::Tensor& numbers) {
  if (!state_) state_ = std::make_shared<State>();
  State::Copy& copy = state_->copies[state_->count++ % state_->copies.size()];
  if (!copy.memory.defined())
    copy.memory = at::empty(numbers.sizes(), at::TensorOptions(at::kInt).pinned_memory(true));
  copy.memory.copy_(numbers, /*non_blocking=*/true);
  copy.copied.record();
}

std::vector<int32_t> LateNumbers::before_last() {
  if (!state_ || state_->count < state_->copies.size()) return {};
  State::Copy& copy = state_->copies[state_->count % state_->copies.size()];
  copy.copied.synchronize();
  const int32_t* first = copy.memory.data_ptr<int32_t>();
  return {first, first + copy.memory.numel()};
}

}  // namespace forge::libtorch::cuda

namespace forge::libtorch {

constexpr int runs_before_recording = 3;

struct StepGraph::State {
  bool recordable = true;
  int runs = 0;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
  const void* memory = nullptr;  ///< of the tensor that may move
};

void StepGraph::forget() {
  if (state_->graph) c10::cuda::getCurrentCUDAStream().synchronize();
  *state_ = State();
}

void StepGraph::run_on_gpu(const std::function<void()>& work, const at::Tensor& relocatable) {
  if (!state_) state_ = std::make_shared<State>();
  State& state = *state_;
  const void* memory = relocatable.defined() ? relocatable.data_ptr() : nullptr;
  if (state.graph && memory != state.memory) forget();
  state.memory = memory;
  if (state.graph) return state.graph->replay();
  if (!state.recordable || state.runs++ < runs_before_recording) return work();
  // The first runs' memory is released: the recording takes as much from a pool of its own.
  c10::cuda::getCurrentCUDAStream().synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  // What other threads do to the device, as a library that talks to other processes, is not the
  // recording's business then.
  const auto mode = otherwise_ == Otherwise::error ? cudaStreamCaptureModeThreadLocal
                                                   : cudaStreamCaptureModeGlobal;
  try {
    graph->capture_begin({0, 0}, mode);
    work();
    graph->capture_end();
  } catch (const c10::Error& error) {
    state.recordable = false;
    try {
      graph->capture_end();
    } catch (const c10::Error&) {
      // The recording is broken already; ending it frees the stream.
    }
    if (otherwise_ == Otherwise::error) {
      throw Error(std::string("a step of several processes could not be recorded: ") +
                      error.what_without_backtrace(),
                  "--processes 1",
                  ExitCode::failed);
    }
    std::cerr << "note: steps are not replayed as a CUDA graph, so they start slower: "
              << error.what_without_backtrace() << "\n";
    graph.reset();  // its memory is needed
    return work();
  }
  state.graph = std::move(graph);
  state.graph->replay();
}

}  // namespace forge::libtorch
