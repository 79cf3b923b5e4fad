#include "backends/libtorch/worker/cuda.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace forge::worker::cuda {

std::string device_name(int index) { return at::cuda::getDeviceProperties(index)->name; }

int64_t device_memory_bytes(int index) {
  return static_cast<int64_t>(at::cuda::getDeviceProperties(index)->totalGlobalMem);
}

int64_t peak_memory_bytes(int index) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(index).allocated_bytes[0].peak;
}

void reset_peak_memory(int index) { c10::cuda::CUDACachingAllocator::resetPeakStats(index); }

}  // namespace forge::worker::cuda
