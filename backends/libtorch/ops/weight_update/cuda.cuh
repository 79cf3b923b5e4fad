#pragma once

#include "backends/libtorch/ops/common/cuda.cuh"
#include "backends/libtorch/ops/weight_update/cuda.h"

namespace forge::ops::cuda {

constexpr int update_threads = 256;
constexpr int update_width = 4;

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
__device__ __forceinline__ float rounded_stochastically(float x, uint32_t bits) {
  if (!isfinite(x)) return to_float(from_float<bfloat16>(x));
  return __uint_as_float((__float_as_uint(x) + (bits & 0xFFFFu)) & 0xFFFF0000u);
}

/// The tensor that a block works on, and the elements of it.
struct UpdatedRange {
  int tensor;
  int64_t begin, end;
};

__device__ __forceinline__ UpdatedRange range_of(const UpdatedTensors& all) {
  const int block = static_cast<int>(blockIdx.x);
  int tensor = 0;
  while (tensor + 1 < all.count && all.first_block[tensor + 1] <= block) ++tensor;
  const int64_t begin = (block - all.first_block[tensor]) * elements_of_block;
  return {tensor, begin, min(begin + elements_of_block, all.tensors[tensor].count)};
}

/// Up to four elements; what is missing at the end reads as zero.
template <class T>
__device__ __forceinline__ void load_some(
    const T* p, int64_t i, int64_t end, bool is_aligned, float (&out)[update_width]) {
  if (is_aligned && i + update_width <= end) return load(p + i, out);
#pragma unroll
  for (int j = 0; j < update_width; ++j) out[j] = i + j < end ? to_float(p[i + j]) : 0.0f;
}

template <class T>
__device__ __forceinline__ void store_some(
    T* p, int64_t i, int64_t end, bool is_aligned, const float (&in)[update_width]) {
  if (is_aligned && i + update_width <= end) return store(p + i, in);
#pragma unroll
  for (int j = 0; j < update_width; ++j) {
    if (i + j < end) p[i + j] = from_float<T>(in[j]);
  }
}

/// partial[block] = sum of g^2 over the block's elements.
/// Grid: a block for each 8192 elements of a tensor. Block: 256 threads of 4 elements at a time.
/// Shared memory: 32 bytes. Reads every gradient once: 2 or 4 bytes each.
template <class Gradient>
__global__ void square_sums_kernel(UpdatedTensors all, float* partial) {
  __shared__ float of_warp[update_threads / warp_size];
  const UpdatedRange range = range_of(all);
  const UpdatedTensor& tensor = all.tensors[range.tensor];
  const auto* gradients = static_cast<const Gradient*>(tensor.gradients);
  const bool is_aligned = tensor.is_aligned != 0;
  float sum = 0;
#pragma unroll 4
  for (int64_t i = range.begin + threadIdx.x * update_width; i < range.end;
       i += update_threads * update_width) {
    float g[update_width];
    load_some(gradients, i, range.end, is_aligned, g);
#pragma unroll
    for (int j = 0; j < update_width; ++j) sum += g[j] * g[j];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < update_threads / warp_size; ++warp) sum += of_warp[warp];
  partial[blockIdx.x] = sum;
}

constexpr int step_threads = 1024;

/// The global norm of the gradients, sqrt(sum of partial), clipping and rates of this step. With the
/// step number t from 1: clip = min(1, max_norm / (norm + 1e-6)), and for each group, with lr the
/// step's rate times the group's factor: decay_factor = 1 - lr wd, rate = lr, of AdamW
/// lr / (1 - beta1^t); root_correction2 = sqrt(1 - beta2^t).
/// Grid: one block. Block: 1024 threads. Shared memory: 8 KiB. Reads 4 bytes for each partial sum.
__global__ void begin_step_kernel(StepBeginning in) {
  __shared__ double sums[step_threads];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < in.partial_count; i += step_threads) sum += in.partial[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int distance = step_threads / 2; distance > 0; distance /= 2) {
    if (static_cast<int>(threadIdx.x) < distance) sums[threadIdx.x] += sums[threadIdx.x + distance];
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  const double norm = sqrt(sums[0]);
  const int64_t step = in.steps[0];
  const double scheduled = in.learning_rates[min(step, in.learning_rate_count - 1)];
  const double t = static_cast<double>(step + 1);
  const double factor = in.clip / (norm + 1e-6);
  StepConstants& out = *in.constants;
  // A norm that is no number must show in the weights, as it does everywhere else.
  out.scalars.clip = in.clip > 0 && !(factor >= 1) ? static_cast<float>(factor) : 1.0f;
  out.scalars.beta1 = static_cast<float>(in.beta1);
  out.scalars.beta2 = static_cast<float>(in.beta2);
  out.scalars.eps = static_cast<float>(in.eps);
  out.scalars.root_correction2 = static_cast<float>(sqrt(1 - pow(in.beta2, t)));
  out.scalars.momentum = static_cast<float>(in.momentum);
  out.scalars.nesterov = in.nesterov;
  out.scalars.step = static_cast<uint32_t>(step);
  for (int i = 0; i < in.group_count; ++i) {
    const GroupSettings& group = in.groups[i];
    const double lr = scheduled * group.lr_factor;
    out.decay_factor[i] = static_cast<float>(1 - lr * group.weight_decay);
    const double correction = group.is_corrected ? 1 - pow(in.beta1, t) : 1.0;
    out.rate[i] = static_cast<float>(lr / correction);
  }
  in.steps[0] = step + 1;
  in.totals[0] += in.loss[0];
  in.totals[1] += norm;
}

/// What a rule subtracts from a decayed weight, and what becomes of the moments: m, v; `rate` is
/// the group's, times the tensor's factor.
template <Rule rule>
__device__ __forceinline__ float step_of(
    const StepScalars& k, float rate, float g, float& m, float& v) {
  if constexpr (rule == Rule::direction) return rate * g;
  g *= k.clip;
  if constexpr (rule == Rule::adamw) {
    m = k.beta1 * m + (1 - k.beta1) * g;
    v = k.beta2 * v + (1 - k.beta2) * g * g;
    return rate * m / (sqrtf(v) / k.root_correction2 + k.eps);
  } else if constexpr (rule == Rule::lion) {
    const float mixed = k.beta1 * m + (1 - k.beta1) * g;
    m = k.beta2 * m + (1 - k.beta2) * g;
    // A mean that is no number must show in the weight.
    return mixed > 0 ? rate : mixed < 0 ? -rate : rate * mixed;
  } else if constexpr (rule == Rule::sgd) {
    m = k.momentum * m + g;
    return rate * (k.nesterov ? g + k.momentum * m : m);
  } else {
    return rate * g;
  }
}

template <Rule rule>
constexpr int moments_of = rule == Rule::adamw                       ? 2
                           : rule == Rule::lion || rule == Rule::sgd ? 1
                                                                     : 0;

/// p = decay_factor p - step_of(g, m, v), where with AdamW, g = clip grad:
///     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
///     step = rate m / (sqrt(v) / root_correction2 + eps)
/// with Lion  step = rate sign(beta1 m + (1 - beta1) g),  m = beta2 m + (1 - beta2) g
/// with SGD   m = momentum m + g,  step = rate m, or with Nesterov's rate (g + momentum m).
/// bfloat16 weights are rounded stochastically, by Philox bits of seed, element and step.
/// Grid: a block for each 8192 elements of a tensor. Block: 256 threads of 4 elements at a time.
/// Shared memory: none. Moves for each element p and the moments both ways and the gradient once:
/// of AdamW 28 bytes in float32, of Lion and SGD 20; 2 less for a bfloat16 gradient, 4 less for a
/// bfloat16 weight, 2 more for a rounded copy.
template <class Gradient, Rule rule, Storage storage>
__global__ void update_kernel(UpdatedTensors all, const StepConstants* constants, uint64_t seed) {
  const StepScalars k = constants->scalars;
  const UpdatedRange range = range_of(all);
  const UpdatedTensor& tensor = all.tensors[range.tensor];
  const auto* gradients = static_cast<const Gradient*>(tensor.gradients);
  const bool is_aligned = tensor.is_aligned != 0;
  const float decay_factor = constants->decay_factor[tensor.group];
  const float rate = constants->rate[tensor.group] * tensor.factor;
#pragma unroll 2
  for (int64_t i = range.begin + threadIdx.x * update_width; i < range.end;
       i += update_threads * update_width) {
    float p[update_width], g[update_width], m[update_width] = {}, v[update_width] = {};
    if constexpr (storage == Storage::float32) {
      load_some(static_cast<const float*>(tensor.weights), i, range.end, is_aligned, p);
    } else {
      load_some(static_cast<const bfloat16*>(tensor.weights), i, range.end, is_aligned, p);
    }
    load_some(gradients, i, range.end, is_aligned, g);
    if constexpr (moments_of<rule> > 0)
      load_some(tensor.first_moments, i, range.end, is_aligned, m);
    if constexpr (moments_of<rule> > 1)
      load_some(tensor.second_moments, i, range.end, is_aligned, v);
#pragma unroll
    for (int j = 0; j < update_width; ++j)
      p[j] = decay_factor * p[j] - step_of<rule>(k, rate, g[j], m[j], v[j]);
    if constexpr (moments_of<rule> > 0)
      store_some(tensor.first_moments, i, range.end, is_aligned, m);
    if constexpr (moments_of<rule> > 1)
      store_some(tensor.second_moments, i, range.end, is_aligned, v);
    if constexpr (storage == Storage::float32) {
      store_some(static_cast<float*>(tensor.weights), i, range.end, is_aligned, p);
      if (tensor.rounded) store_some(tensor.rounded, i, range.end, is_aligned, p);
    } else {
      const Bits bits = philox(seed, static_cast<uint64_t>(tensor.first_element + i), k.step);
#pragma unroll
      for (int j = 0; j < update_width; ++j) p[j] = rounded_stochastically(p[j], bits.of[j]);
      store_some(static_cast<bfloat16*>(tensor.weights), i, range.end, is_aligned, p);
    }
  }
}

/// Muon's m = momentum m + (1 - momentum) g with g = clip grad, and into `rounded` what is to be
/// made orthogonal: m, or with Nesterov's (1 - momentum) g + momentum m.
/// Grid: a block for each 8192 elements of a tensor. Block: 256 threads of 4 elements at a time.
/// Shared memory: none. Moves for each element m both ways, the gradient and the result: 14 bytes,
/// 2 less for a bfloat16 gradient.
template <class Gradient>
__global__ void momentum_kernel(UpdatedTensors all, const StepConstants* constants) {
  const StepScalars k = constants->scalars;
  const UpdatedRange range = range_of(all);
  const UpdatedTensor& tensor = all.tensors[range.tensor];
  const auto* gradients = static_cast<const Gradient*>(tensor.gradients);
  const bool is_aligned = tensor.is_aligned != 0;
#pragma unroll 2
  for (int64_t i = range.begin + threadIdx.x * update_width; i < range.end;
       i += update_threads * update_width) {
    float g[update_width], m[update_width], ahead[update_width];
    load_some(gradients, i, range.end, is_aligned, g);
    load_some(tensor.first_moments, i, range.end, is_aligned, m);
#pragma unroll
    for (int j = 0; j < update_width; ++j) {
      g[j] *= k.clip;
      m[j] = k.momentum * m[j] + (1 - k.momentum) * g[j];
      ahead[j] = k.nesterov ? (1 - k.momentum) * g[j] + k.momentum * m[j] : m[j];
    }
    store_some(tensor.first_moments, i, range.end, is_aligned, m);
    store_some(tensor.rounded, i, range.end, is_aligned, ahead);
  }
}

// The launchers. `start` starts kernels, as Start does.

template <class Gradient, class Launch>
void run_square_sums(const UpdatedTensors& tensors, float* partial, const Launch& start) {
  if (tensors.blocks == 0) return;
  start(square_sums_kernel<Gradient>, tensors.blocks, 1, update_threads, tensors, partial);
}

template <class Launch>
void run_begin_step(const StepBeginning& in, const Launch& start) {
  start(begin_step_kernel, 1, 1, step_threads, in);
}

template <class Gradient, Rule rule, class Launch>
void run_rule(const UpdatedTensors& tensors,
              Storage storage,
              const StepConstants* constants,
              uint64_t seed,
              const Launch& start) {
  const auto kernel = storage == Storage::float32
                          ? update_kernel<Gradient, rule, Storage::float32>
                          : update_kernel<Gradient, rule, Storage::bfloat16_stochastic>;
  start(kernel, tensors.blocks, 1, update_threads, tensors, constants, seed);
}

template <class Gradient, class Launch>
void run_update(const UpdatedTensors& tensors,
                Rule rule,
                Storage storage,
                const StepConstants* constants,
                uint64_t seed,
                const Launch& start) {
  if (tensors.blocks == 0) return;
  switch (rule) {
    case Rule::adamw:
      return run_rule<Gradient, Rule::adamw>(tensors, storage, constants, seed, start);
    case Rule::lion:
      return run_rule<Gradient, Rule::lion>(tensors, storage, constants, seed, start);
    case Rule::sgd: return run_rule<Gradient, Rule::sgd>(tensors, storage, constants, seed, start);
    case Rule::sgd_without_momentum:
      return run_rule<Gradient, Rule::sgd_without_momentum>(
          tensors, storage, constants, seed, start);
    case Rule::direction:
      return run_rule<Gradient, Rule::direction>(tensors, storage, constants, seed, start);
  }
}

template <class Gradient, class Launch>
void run_momentum(const UpdatedTensors& tensors,
                  const StepConstants* constants,
                  const Launch& start) {
  if (tensors.blocks == 0) return;
  start(momentum_kernel<Gradient>, tensors.blocks, 1, update_threads, tensors, constants);
}

}  // namespace forge::ops::cuda
