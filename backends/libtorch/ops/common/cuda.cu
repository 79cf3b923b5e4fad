#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int row_lanes = 16;

/// out[n] = sum over r of partial[r][n], without atomics, so the order is fixed.
/// Grid: columns / 32. Block: 32 x 16 threads; thread (x, y) adds rows y, y + 16, … of one column,
/// then thread (x, 0) adds the 16 partial sums. Shared memory: 2 KiB. Reads 4 R N bytes,
/// writes 4 N.
__global__ void add_rows_kernel(const float* partial, int64_t rows, int64_t columns, float* out) {
  __shared__ float sums[row_lanes][warp_size];
  const int64_t column = int64_t{blockIdx.x} * warp_size + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += row_lanes) {
      sum += partial[row * columns + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= columns) return;
#pragma unroll
  for (int lane = 1; lane < row_lanes; ++lane) sum += sums[lane][threadIdx.x];
  out[column] = sum;
}

}  // namespace

void add_rows(
    const float* partial, int64_t rows, int64_t columns, float* out, cudaStream_t stream) {
  if (columns == 0) return;
  const auto blocks = static_cast<unsigned>((columns + warp_size - 1) / warp_size);
  add_rows_kernel<<<blocks, dim3(warp_size, row_lanes), 0, stream>>>(partial, rows, columns, out);
  require_started();
}

}  // namespace forge::ops::cuda
