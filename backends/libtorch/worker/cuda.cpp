#include "backends/libtorch/worker/cuda.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace forge::worker::cuda {

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

}  // namespace forge::worker::cuda
