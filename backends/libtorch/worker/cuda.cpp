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

namespace forge::libtorch::cuda {

std::string device_name(int index) { return at::cuda::getDeviceProperties(index)->name; }

int64_t device_memory_bytes(int index) {
  return static_cast<int64_t>(at::cuda::getDeviceProperties(index)->totalGlobalMem);
}

int64_t peak_memory_bytes(int index) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(index).reserved_bytes[0].peak;
}

void reset_peak_memory(int index) { c10::cuda::CUDACachingAllocator::resetPeakStats(index); }

void give_back_unused_memory(int index) {
  at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(index)).synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
}

int64_t memory_held_elsewhere(int index) {
  // What CUDA itself and the libraries hold for this process is not known; it is less than that.
  constexpr int64_t own_surroundings = int64_t{2} << 30;
  size_t free = 0, total = 0;
  if (::cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  const int64_t own =
      c10::cuda::CUDACachingAllocator::getDeviceStats(index).reserved_bytes[0].current;
  const int64_t held = static_cast<int64_t>(total) - static_cast<int64_t>(free);
  return std::max<int64_t>(0, held - own - own_surroundings);
}

void limit_memory(int index, int64_t bytes) {
  // The allocator knows its devices from the first tensor on.
  const auto device = static_cast<c10::DeviceIndex>(index);
  static_cast<void>(at::empty({0}, at::TensorOptions(at::Device(at::kCUDA, device))));
  const double share = double(bytes) / double(device_memory_bytes(index));
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(share, 1.0), device);
}

void use_own_stream(int index) {
  const auto device = static_cast<c10::DeviceIndex>(index);
  c10::cuda::set_device(device);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device));
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

HostCopies::HostCopies() : state_(std::make_unique<State>()) {}
HostCopies::~HostCopies() = default;

void HostCopies::copy(const int32_t* from, int64_t count, at::Tensor& to) {
  State::Buffer& buffer = state_->buffers[state_->next++ % state_->buffers.size()];
  if (buffer.in_use) buffer.copied.synchronize();
  if (!buffer.memory.defined() || buffer.memory.numel() != count)
    buffer.memory = at::empty({count}, at::TensorOptions(at::kInt).pinned_memory(true));
  std::memcpy(buffer.memory.data_ptr(), from, sizeof(int32_t) * static_cast<size_t>(count));
  to.view({-1}).copy_(buffer.memory, /*non_blocking=*/true);
  buffer.copied.record();
  buffer.in_use = true;
}

}  // namespace forge::libtorch::cuda

namespace forge::libtorch {
namespace {

constexpr int runs_before_recording = 3;

}  // namespace

struct StepGraph::State {
  bool on_gpu = false;
  bool recordable = true;
  int runs = 0;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
  const void* memory = nullptr;  ///< of what may move

  void reset() {
    if (graph) c10::cuda::getCurrentCUDAStream().synchronize();
    graph.reset();
    recordable = true;
    runs = 0;
  }

  void reset_if_relocated(const void* now) {
    if (graph && now != memory) reset();
    memory = now;
  }
};

StepGraph::StepGraph(const at::Device& device) : state_(std::make_unique<State>()) {
  state_->on_gpu = device.is_cuda();
}

StepGraph::~StepGraph() = default;

void StepGraph::reset() { state_->reset(); }

void StepGraph::run(const std::function<void()>& work, const at::Tensor& relocatable) {
  State& state = *state_;
  state.reset_if_relocated(relocatable.defined() ? relocatable.data_ptr() : nullptr);
  if (state.graph) return state.graph->replay();
  if (!state.on_gpu || !state.recordable || state.runs++ < runs_before_recording) return work();
  // What the first runs took is given back: the recording takes the same from a pool of its own.
  c10::cuda::getCurrentCUDAStream().synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  try {
    graph->capture_begin();
    work();
    graph->capture_end();
  } catch (const c10::Error& error) {
    state.recordable = false;
    try {
      graph->capture_end();
    } catch (const c10::Error&) {
      // The recording is broken already; ending it frees the stream.
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
