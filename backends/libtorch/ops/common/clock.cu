#include "backends/libtorch/ops/common/clock.h"
#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

/// Grid: several times as many blocks as multiprocessors, so that each has one. Block: one thread.
__global__ void read_clock_kernel(int64_t* readings) {
  unsigned multiprocessor = 0;
  unsigned long long nanoseconds = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  if (multiprocessor >= most_multiprocessors) return;
  readings[2 * multiprocessor] = clock64();
  readings[2 * multiprocessor + 1] = static_cast<int64_t>(nanoseconds);
}

}  // namespace

void read_clock(int64_t* readings, cudaStream_t stream) {
  constexpr unsigned blocks = 8 * most_multiprocessors;
  read_clock_kernel<<<blocks, 1, 0, stream>>>(readings);
  require_started();
}

}  // namespace forge::ops::cuda
