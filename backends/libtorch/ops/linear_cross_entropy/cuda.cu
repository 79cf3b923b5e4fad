#include "backends/libtorch/ops/linear_cross_entropy/cuda.h"

#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int32_t unscored = -100;
constexpr int width = 8;

/// Largest logit and the sum of exponentials relative to it, as they are joined from parts.
struct Exponentials {
  float largest, sum;
};

__device__ __forceinline__ Exponentials join(const Exponentials& a, const Exponentials& b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0};
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__device__ __forceinline__ Exponentials warp_join(Exponentials x) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    const Exponentials other{__shfl_xor_sync(0xffffffffu, x.largest, distance),
                             __shfl_xor_sync(0xffffffffu, x.sum, distance)};
    // The lower lane's part stands first, so that both lanes join the same two in the same order.
    x = threadIdx.x & distance ? join(other, x) : join(x, other);
  }
  return x;
}

/// The same in all threads of a block.
__device__ __forceinline__ Exponentials block_join(Exponentials x) {
  __shared__ Exponentials of_warp[warp_size];
  x = warp_join(x);
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = x;
  __syncthreads();
  const int lane = threadIdx.x % warp_size, warps = blockDim.x / warp_size;
  return warp_join(lane < warps ? of_warp[lane] : Exponentials{-INFINITY, 0});
}

/// A row's loss, and what the two parts of its gradient are multiplied by.
struct RowLoss {
  float loss, p_scale, target_scale;
};

__device__ __forceinline__ RowLoss row_loss(ZLossKind kind, float c, float log_sum_exp, float n) {
  switch (kind) {
    case ZLossKind::palm: return {n + c * log_sum_exp * log_sum_exp, 1 + 2 * c * log_sum_exp, 1};
    case ZLossKind::lingua_code: return {n + c * n * n, 1 + 2 * c * n, 1 + 2 * c * n};
    case ZLossKind::none: break;
  }
  return {n, 1, 1};
}

/// A block a row: it reads the row twice, the second time from the L2 cache.
template <class T>
__global__ void loss_rows_kernel(LossRows<T> in) {
  const int64_t row = blockIdx.x;
  T* logits = in.logits + row * in.stride;
  const int32_t target = in.targets[row];
  if (target == unscored) {
    if (threadIdx.x == 0) in.losses[row] = 0;
    if (!in.gradients) return;
    float zeros[width];
    fill(zeros, 0);
    for (int64_t i = threadIdx.x * width; i < in.stride; i += blockDim.x * width)
      store(logits + i, zeros);
    return;
  }
  const float of_target = to_float(logits[target]);
  Exponentials part{-INFINITY, 0};
  for (int64_t i = threadIdx.x * width; i < in.vocabulary; i += blockDim.x * width) {
    float x[width];
    load(logits + i, x);
    float largest = part.largest;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      if (i + j >= in.vocabulary) x[j] = -INFINITY;
      largest = fmaxf(largest, x[j]);
    }
    float sum = part.largest == -INFINITY ? 0.0f : part.sum * __expf(part.largest - largest);
#pragma unroll
    for (int j = 0; j < width; ++j) sum += __expf(x[j] - largest);
    part = {largest, sum};
  }
  // Behind its barrier every thread has read the row, and nobody has written it.
  const Exponentials all = block_join(part);
  const float log_sum_exp = all.largest + logf(all.sum);
  const RowLoss result = row_loss(in.z_loss, in.coefficient, log_sum_exp, log_sum_exp - of_target);
  if (threadIdx.x == 0) in.losses[row] = result.loss;
  if (!in.gradients) return;
  const float inverse_count = 1 / in.count[0];
  const float scale = result.p_scale * inverse_count / all.sum;
  for (int64_t i = threadIdx.x * width; i < in.stride; i += blockDim.x * width) {
    float x[width];
    load(logits + i, x);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      x[j] = i + j < in.vocabulary ? __expf(x[j] - all.largest) * scale : 0;
      if (i + j == target) x[j] -= result.target_scale * inverse_count;
    }
    store(logits + i, x);
  }
}

constexpr int sum_threads = 1024;

/// The sum over a block in its first thread; in a fixed order.
template <class T>
__device__ T block_sum(T x) {
  __shared__ T parts[sum_threads];
  parts[threadIdx.x] = x;
  __syncthreads();
  for (int distance = sum_threads / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < distance) parts[threadIdx.x] += parts[threadIdx.x + distance];
    __syncthreads();
  }
  return parts[0];
}

__global__ void count_scored_kernel(const int32_t* targets, int64_t rows, float* count) {
  int scored = 0;
  for (int64_t i = threadIdx.x; i < rows; i += sum_threads) scored += targets[i] != unscored;
  scored = block_sum(scored);
  if (threadIdx.x == 0) *count = static_cast<float>(scored);
}

__global__ void mean_loss_kernel(const float* losses,
                                 int64_t rows,
                                 const float* count,
                                 float* loss) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += sum_threads) sum += losses[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / *count);
}

template <class T>
__global__ void scale_kernel(T* x, int64_t count, const float* factor) {
  const float by = *factor;
  if (by == 1) return;
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  if (first + width <= count) {
    float values[width];
    load(x + first, values);
#pragma unroll
    for (int j = 0; j < width; ++j) values[j] *= by;
    store(x + first, values);
  } else {
    for (int64_t i = first; i < count; ++i) x[i] = from_float<T>(to_float(x[i]) * by);
  }
}

}  // namespace

template <class T>
void loss_rows(const LossRows<T>& in, cudaStream_t stream) {
  if (in.rows == 0) return;
  const int64_t packs = in.stride / width;
  const unsigned threads = packs >= 2048 ? 512 : packs >= 256 ? 256 : 128;
  loss_rows_kernel<<<static_cast<unsigned>(in.rows), threads, 0, stream>>>(in);
}

void count_scored(const int32_t* targets, int64_t rows, float* count, cudaStream_t stream) {
  count_scored_kernel<<<1, sum_threads, 0, stream>>>(targets, rows, count);
}

void mean_loss(
    const float* losses, int64_t rows, const float* count, float* loss, cudaStream_t stream) {
  mean_loss_kernel<<<1, sum_threads, 0, stream>>>(losses, rows, count, loss);
}

template <class T>
void scale_unless_one(T* x, int64_t count, const float* factor, cudaStream_t stream) {
  if (count == 0) return;
  constexpr int threads = 256;
  const auto blocks = static_cast<unsigned>((count + threads * width - 1) / (threads * width));
  scale_kernel<<<blocks, threads, 0, stream>>>(x, count, factor);
}

template void loss_rows(const LossRows<float>&, cudaStream_t);
template void loss_rows(const LossRows<bfloat16>&, cudaStream_t);
template void scale_unless_one(float*, int64_t, const float*, cudaStream_t);
template void scale_unless_one(bfloat16*, int64_t, const float*, cudaStream_t);

}  // namespace forge::ops::cuda
