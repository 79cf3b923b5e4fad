#include "backends/libtorch/ops/linear_attention/cuda.h"

#include "backends/libtorch/ops/linear_attention/cuda_launch.cuh"

namespace forge::ops::cuda {
namespace {

auto launcher(cudaStream_t stream) {
  return [stream](auto kernel,
                  unsigned x,
                  unsigned y,
                  unsigned z,
                  size_t shared_bytes,
                  const LinearAttentionArguments& in) {
    cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    kernel<<<dim3(x, y, z), tile_threads, shared_bytes, stream>>>(in);
    require_started();
  };
}

}  // namespace

void linear_attention_forward(const LinearAttentionArguments& arguments, cudaStream_t stream) {
  run_forward(arguments, launcher(stream));
}

void linear_attention_backward(const LinearAttentionArguments& arguments, cudaStream_t stream) {
  run_backward(arguments, launcher(stream));
}

}  // namespace forge::ops::cuda
