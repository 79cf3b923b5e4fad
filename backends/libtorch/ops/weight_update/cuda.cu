#include "backends/libtorch/ops/adamw/cuda.h"

#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int threads = 256;
constexpr int width = 4;

/// Random bits of a counter (Philox 4x32-10, Salmon et al. 2011).
struct Bits {
  uint32_t of[4];
};

__device__ __forceinline__ Bits philox(uint64_t seed, uint64_t counter, uint32_t stream) {
  uint32_t x[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), stream, 0};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(0xD2511F53u, x[0]), low0 = 0xD2511F53u * x[0];
    const uint32_t high1 = __umulhi(0xCD9E8D57u, x[2]), low1 = 0xCD9E8D57u * x[2];
    x[0] = high1 ^ x[1] ^ key0;
    x[1] = low1;
    x[2] = high0 ^ x[3] ^ key1;
    x[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{x[0], x[1], x[2], x[3]}};
}

/// Rounds up with the probability that makes the expected value x: 16 random bits are added to the
/// part that is cut off.
__device__ __forceinline__ bfloat16 rounded_stochastically(float x, uint32_t bits) {
  if (!isfinite(x)) return __float2bfloat16_rn(x);
  const uint32_t pattern = __float_as_uint(x) + (bits & 0xFFFFu);
  return __ushort_as_bfloat16(static_cast<unsigned short>(pattern >> 16));
}

/// The tensor that a block works on, and the elements of it.
struct Range {
  int tensor;
  int64_t begin, end;
};

__device__ __forceinline__ Range range_of(const UpdatedTensors& all) {
  const int block = static_cast<int>(blockIdx.x);
  int tensor = 0;
  while (tensor + 1 < all.count && all.first_block[tensor + 1] <= block) ++tensor;
  const int64_t begin = (block - all.first_block[tensor]) * elements_of_block;
  return {tensor, begin, min(begin + elements_of_block, all.tensors[tensor].count)};
}

/// Up to `width` elements; what is missing at the end reads as zero.
template <class T>
__device__ __forceinline__ void load_some(const T* p, int64_t i, int64_t end, float (&out)[width]) {
  if (i + width <= end) return load(p + i, out);
#pragma unroll
  for (int j = 0; j < width; ++j) out[j] = i + j < end ? to_float(p[i + j]) : 0.0f;
}

template <class T>
__device__ __forceinline__ void store_some(T* p, int64_t i, int64_t end, const float (&in)[width]) {
  if (i + width <= end) return store(p + i, in);
#pragma unroll
  for (int j = 0; j < width; ++j) {
    if (i + j < end) p[i + j] = from_float<T>(in[j]);
  }
}

/// partial[block] = sum of g^2 over the block's elements.
/// Grid: a block for each 8192 elements of a tensor. Block: 256 threads of 4 elements at a time.
/// Shared memory: 32 bytes. Reads every gradient once: 2 or 4 bytes each.
template <class Gradient>
__global__ void square_sums_kernel(UpdatedTensors all, float* partial) {
  __shared__ float of_warp[threads / warp_size];
  const Range range = range_of(all);
  const auto* gradients = static_cast<const Gradient*>(all.tensors[range.tensor].gradients);
  float sum = 0;
#pragma unroll 4
  for (int64_t i = range.begin + threadIdx.x * width; i < range.end; i += threads * width) {
    float g[width];
    load_some(gradients, i, range.end, g);
#pragma unroll
    for (int j = 0; j < width; ++j) sum += g[j] * g[j];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < threads / warp_size; ++warp) sum += of_warp[warp];
  partial[blockIdx.x] = sum;
}

constexpr int step_threads = 1024;

/// The global norm of the gradients, sqrt(sum of partial), clipping and learning rate of this step.
/// With the step number t from 1: clip = min(1, max_norm / (norm + 1e-6)),
///   rate = lr / (1 - beta1^t), root_correction2 = sqrt(1 - beta2^t), decay_factor = 1 - lr wd.
/// Grid: one block. Block: 1024 threads. Shared memory: 8 KiB. Reads 4 bytes for each partial sum.
__global__ void begin_step_kernel(StepBeginning in) {
  __shared__ double sums[step_threads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < in.partial_count; i += step_threads) sum += in.partial[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int distance = step_threads / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < distance) sums[threadIdx.x] += sums[threadIdx.x + distance];
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  const double norm = sqrt(sums[0]);
  const int64_t step = in.steps[0];
  const double lr = in.learning_rates[min(step, in.learning_rate_count - 1)];
  const double t = static_cast<double>(step + 1);
  const double factor = in.clip / (norm + 1e-6);
  // A norm that is no number must show in the weights, as it does everywhere else.
  in.constants->clip = in.clip > 0 && !(factor >= 1) ? static_cast<float>(factor) : 1.0f;
  in.constants->decay_factor = static_cast<float>(1 - lr * in.weight_decay);
  in.constants->beta1 = static_cast<float>(in.beta1);
  in.constants->beta2 = static_cast<float>(in.beta2);
  in.constants->eps = static_cast<float>(in.eps);
  in.constants->rate = static_cast<float>(lr / (1 - pow(in.beta1, t)));
  in.constants->root_correction2 = static_cast<float>(sqrt(1 - pow(in.beta2, t)));
  in.constants->step = static_cast<uint32_t>(step);
  in.steps[0] = step + 1;
  in.totals[0] += in.loss[0];
  in.totals[1] += norm;
}

/// AdamW: g = clip grad,  m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
///   p = decay_factor p - rate m / (sqrt(v) / root_correction2 + eps);
/// bfloat16 weights are rounded stochastically, by Philox bits of seed, element and step.
/// Grid: a block for each 8192 elements of a tensor. Block: 256 threads of 4 elements at a time.
/// Shared memory: none. Moves for each element p, m and v both ways and the gradient once: 28 bytes
/// in float32; 2 less for a bfloat16 gradient, 4 less for a bfloat16 weight, 2 more for a
/// rounded copy.
template <class Gradient, Storage storage>
__global__ void update_kernel(UpdatedTensors all, const StepConstants* constants, uint64_t seed) {
  const StepConstants k = *constants;
  const Range range = range_of(all);
  const UpdatedTensor& tensor = all.tensors[range.tensor];
  const auto* gradients = static_cast<const Gradient*>(tensor.gradients);
  int64_t before = all.first_element;
  for (int i = 0; i < range.tensor; ++i) before += all.tensors[i].count;
#pragma unroll 2
  for (int64_t i = range.begin + threadIdx.x * width; i < range.end; i += threads * width) {
    float p[width], g[width], m[width], v[width];
    if constexpr (storage == Storage::float32) {
      load_some(static_cast<const float*>(tensor.weights), i, range.end, p);
    } else {
      load_some(static_cast<const bfloat16*>(tensor.weights), i, range.end, p);
    }
    load_some(gradients, i, range.end, g);
    load_some(tensor.first_moments, i, range.end, m);
    load_some(tensor.second_moments, i, range.end, v);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      g[j] *= k.clip;
      m[j] = k.beta1 * m[j] + (1 - k.beta1) * g[j];
      v[j] = k.beta2 * v[j] + (1 - k.beta2) * g[j] * g[j];
      p[j] = k.decay_factor * p[j] - k.rate * m[j] / (sqrtf(v[j]) / k.root_correction2 + k.eps);
    }
    store_some(tensor.first_moments, i, range.end, m);
    store_some(tensor.second_moments, i, range.end, v);
    if constexpr (storage == Storage::float32) {
      store_some(static_cast<float*>(tensor.weights), i, range.end, p);
      if (tensor.rounded) store_some(tensor.rounded, i, range.end, p);
    } else {
      const Bits bits = philox(seed, static_cast<uint64_t>(before + i), k.step);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        p[j] = to_float(rounded_stochastically(p[j], bits.of[j]));
      }
      store_some(static_cast<bfloat16*>(tensor.weights), i, range.end, p);
    }
  }
}

}  // namespace

template <class Gradient>
void square_sums(const UpdatedTensors& tensors, float* partial, cudaStream_t stream) {
  if (tensors.blocks == 0) return;
  square_sums_kernel<Gradient><<<tensors.blocks, threads, 0, stream>>>(tensors, partial);
}

void begin_step(const StepBeginning& in, cudaStream_t stream) {
  begin_step_kernel<<<1, step_threads, 0, stream>>>(in);
}

template <class Gradient>
void adamw_update(const UpdatedTensors& tensors,
                  Storage storage,
                  const StepConstants* constants,
                  uint64_t seed,
                  cudaStream_t stream) {
  if (tensors.blocks == 0) return;
  const auto kernel = storage == Storage::float32
                          ? update_kernel<Gradient, Storage::float32>
                          : update_kernel<Gradient, Storage::bfloat16_stochastic>;
  kernel<<<tensors.blocks, threads, 0, stream>>>(tensors, constants, seed);
}

template void square_sums<float>(const UpdatedTensors&, float*, cudaStream_t);
template void square_sums<bfloat16>(const UpdatedTensors&, float*, cudaStream_t);
template void adamw_update<float>(
    const UpdatedTensors&, Storage, const StepConstants*, uint64_t, cudaStream_t);
template void adamw_update<bfloat16>(
    const UpdatedTensors&, Storage, const StepConstants*, uint64_t, cudaStream_t);

}  // namespace forge::ops::cuda
