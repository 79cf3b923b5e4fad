#include "backends/libtorch/ops/linear_cross_entropy/cuda.h"

#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int32_t unscored = -100;
constexpr int width = 8;  // logits of a vector

/// e^(x - shift)
__device__ __forceinline__ float exponential(float x, float shift) {
  return power_of_two(fmaf(x, log2_of_e, -shift * log2_of_e));
}

/// The largest of some logits, and the sum of their exponentials relative to it (online softmax).
struct Exponentials {
  float largest, sum;
};

__device__ __forceinline__ Exponentials join(const Exponentials& a, const Exponentials& b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0};
  return {largest,
          a.sum * exponential(a.largest, largest) + b.sum * exponential(b.largest, largest)};
}

__device__ __forceinline__ Exponentials warp_join(Exponentials x) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    const Exponentials other{__shfl_xor_sync(0xffffffffu, x.largest, distance),
                             __shfl_xor_sync(0xffffffffu, x.sum, distance)};
    // The lower lane's part comes first: both lanes join the same two in the same order.
    x = threadIdx.x & distance ? join(other, x) : join(x, other);
  }
  return x;
}

/// Joins the parts of all threads of a row; rows of one warp need no barrier.
template <int row_threads>
__device__ __forceinline__ Exponentials row_join(Exponentials x) {
  x = warp_join(x);
  if constexpr (row_threads > warp_size) {
    __shared__ Exponentials of_warp[warp_size];
    constexpr int warps = row_threads / warp_size;
    const int lane = threadIdx.x % warp_size, first = threadIdx.x / row_threads * warps;
    if (lane == 0) of_warp[threadIdx.x / warp_size] = x;
    __syncthreads();
    x = warp_join(lane < warps ? of_warp[first + lane] : Exponentials{-INFINITY, 0});
  }
  return x;
}

/// A row's loss, and the factors of softmax and of the one-hot target in its gradient.
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

/// Adds a vector of logits to `part`; the first `count` of them are in the vocabulary.
template <class T>
__device__ __forceinline__ void add_logits(const Vector<T, width>& vector,
                                           int count,
                                           Exponentials& part) {
  float x[width], largest = part.largest;
  to_floats(vector, x);
#pragma unroll
  for (int j = 0; j < width; ++j) {
    if (count < width && j >= count) x[j] = -INFINITY;
    largest = fmaxf(largest, x[j]);
  }
  float sum = part.largest == -INFINITY ? 0.0f : part.sum * exponential(part.largest, largest);
#pragma unroll
  for (int j = 0; j < width; ++j) sum += exponential(x[j], largest);
  part = {largest, sum};
}

/// Vectors of logits that a thread keeps in registers between the two passes over a row.
constexpr int kept_vectors = 8;

/// For each row of logits x with target y: z = logsumexp(x), n = z - x[y], and
///   none: loss = n;  palm: n + c z^2;  lingua_code: n + c n^2;
///   grad_x[v] = (p_scale softmax(x)[v] - target_scale [v = y]) / count, over the logits.
/// An unscored row (target -100) gives zeros.
/// Grid: rows / (block / row_threads). Block: 128 or 512 threads, `row_threads` of 32, 128 or 512 a
/// row. Shared memory: 256 bytes where a row has several warps.
/// Reads and writes each logit once, 2 N V elements; of a row only its first 64 row_threads logits
/// stay in registers, the others are read twice.
template <class T, int row_threads>
__global__ void loss_rows_kernel(LossRows<T> in) {
  const int thread = threadIdx.x % row_threads;
  const int64_t row = int64_t{blockIdx.x} * (blockDim.x / row_threads) + threadIdx.x / row_threads;
  // Threads without a row go on to the barriers.
  const bool active = row < in.rows;
  T* logits = in.logits + (active ? row : 0) * in.stride;
  const int32_t target = active ? in.targets[row] : unscored;
  const bool scored = target != unscored;
  const float of_target = scored ? to_float(logits[target]) : 0;
  const auto vector_at = [&](int i) -> Vector<T, width>& {
    return *reinterpret_cast<Vector<T, width>*>(logits + i);
  };
  const int vocabulary = static_cast<int>(in.vocabulary), stride = static_cast<int>(in.stride);
  constexpr int step = row_threads * width;
  const int begin = thread * width, kept_end = kept_vectors * step;
  Vector<T, width> kept[kept_vectors];
  Exponentials part{-INFINITY, 0};
  if (scored) {
#pragma unroll
    for (int k = 0; k < kept_vectors; ++k) {
      const int i = begin + k * step;
      if (i < vocabulary) kept[k] = vector_at(i);
    }
#pragma unroll
    for (int k = 0; k < kept_vectors; ++k) {
      const int i = begin + k * step;
      if (i < vocabulary) add_logits(kept[k], vocabulary - i, part);
    }
    for (int i = begin + kept_end; i < vocabulary; i += step)
      add_logits(vector_at(i), vocabulary - i, part);
  }
  // After its barrier every thread has read the row, and none has written it.
  const Exponentials all = row_join<row_threads>(part);
  if (!active) return;
  const float log_sum_exp = all.largest + logf(all.sum);
  const float difference = log_sum_exp - of_target;
  // Of a row that is as good as certain, rounding may leave it below 0. What is no number stays.
  const float n = difference < 0 ? 0 : difference;
  const RowLoss result = row_loss(in.z_loss, in.coefficient, log_sum_exp, n);
  if (thread == 0) in.losses[row] = scored ? result.loss : 0;
  if (!in.gradients) return;
  const float inverse_count = scored ? 1 / in.count[0] : 0;
  const float scale = scored ? result.p_scale * inverse_count / all.sum : 0;
  const float of_one = scored ? result.target_scale * inverse_count : 0;
  const float shift = scored ? all.largest : 0;
  const auto write = [&](const Vector<T, width>& vector, int i) {
    float x[width];
    to_floats(vector, x);
#pragma unroll
    for (int j = 0; j < width; ++j) x[j] = exponential(x[j], shift) * scale;
    if (!scored || i + width > vocabulary) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        if (!scored || i + j >= vocabulary) x[j] = 0;
      }
    }
    if (target >= i && target < i + width) {
#pragma unroll
      for (int j = 0; j < width; ++j) x[j] -= i + j == target ? of_one : 0.0f;
    }
    store(logits + i, x);
  };
#pragma unroll
  for (int k = 0; k < kept_vectors; ++k) {
    const int i = begin + k * step;
    if (i < stride) write(kept[k], i);
  }
  for (int i = begin + kept_end; i < stride; i += step) write(vector_at(i), i);
}

template <class T, int row_threads>
void launch_loss_rows(const LossRows<T>& in, cudaStream_t stream) {
  constexpr int threads = row_threads < 128 ? 128 : row_threads;
  constexpr int rows_of_block = threads / row_threads;
  const auto blocks = static_cast<unsigned>((in.rows + rows_of_block - 1) / rows_of_block);
  loss_rows_kernel<T, row_threads><<<blocks, threads, 0, stream>>>(in);
  require_started();
}

constexpr int sum_threads = 1024;

/// The sum over a block, in a fixed order; all threads call it.
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

/// count = the number of targets other than -100.
/// Grid: one block. Block: 1024 threads. Shared memory: 4 KiB. Reads 4 N bytes.
__global__ void count_scored_kernel(const int32_t* targets, int64_t rows, float* count) {
  int scored = 0;
  for (int64_t i = threadIdx.x; i < rows; i += sum_threads) scored += targets[i] != unscored;
  scored = block_sum(scored);
  if (threadIdx.x == 0) *count = static_cast<float>(max(scored, 1));
}

/// loss = (sum of losses, in double) / count.
/// Grid: one block. Block: 1024 threads. Shared memory: 8 KiB. Reads 4 N bytes.
__global__ void mean_loss_kernel(const float* losses,
                                 int64_t rows,
                                 const float* count,
                                 float* loss) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += sum_threads) sum += losses[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / *count);
}

/// x *= factor, unless that is one.
/// Grid, block: a thread for each 8 elements, 256 a block. Shared memory: none. Moves x both ways,
/// or nothing.
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
  const int64_t threads = (in.stride / width + kept_vectors - 1) / kept_vectors;
  if (threads <= 32) return launch_loss_rows<T, 32>(in, stream);
  if (threads <= 128) return launch_loss_rows<T, 128>(in, stream);
  launch_loss_rows<T, 512>(in, stream);
}

void count_scored(const int32_t* targets, int64_t rows, float* count, cudaStream_t stream) {
  count_scored_kernel<<<1, sum_threads, 0, stream>>>(targets, rows, count);
  require_started();
}

void mean_loss(
    const float* losses, int64_t rows, const float* count, float* loss, cudaStream_t stream) {
  mean_loss_kernel<<<1, sum_threads, 0, stream>>>(losses, rows, count, loss);
  require_started();
}

template <class T>
void scale_unless_one(T* x, int64_t count, const float* factor, cudaStream_t stream) {
  if (count == 0) return;
  constexpr int threads = 256;
  const auto blocks = static_cast<unsigned>((count + threads * width - 1) / (threads * width));
  scale_kernel<<<blocks, threads, 0, stream>>>(x, count, factor);
  require_started();
}

template void loss_rows(const LossRows<float>&, cudaStream_t);
template void loss_rows(const LossRows<bfloat16>&, cudaStream_t);
template void scale_unless_one(float*, int64_t, const float*, cudaStream_t);
template void scale_unless_one(bfloat16*, int64_t, const float*, cudaStream_t);

}  // namespace forge::ops::cuda
