#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "backends/libtorch/ops/common/cuda.h"

/// Device functions that the kernels share: vector loads and stores, sums over warps, grid sizes.
namespace forge::ops::cuda {

constexpr int warp_size = 32;

#ifndef FORGE_CUDA_EMULATION  // which defines the same for a CPU

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bfloat16 x) { return __bfloat162float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ bfloat16 from_float<bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

__device__ __forceinline__ unsigned short bits_of(bfloat16 x) { return __bfloat16_as_ushort(x); }
/// Two bfloat16, the first in the lower half.
__device__ __forceinline__ unsigned pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  unsigned word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

constexpr float log2_of_e = 1.4426950408889634f;

/// 2^x, to about 2 units in the last place; results below the normal numbers are zeros.
__device__ __forceinline__ float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
/// 1 / x, as closely.
__device__ __forceinline__ float reciprocal(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

#endif

/// 1 / (1 + e^-x), to about 2 units in the last place.
__device__ __forceinline__ float sigmoid(float x) {
  return reciprocal(1 + power_of_two(-log2_of_e * x));
}

/// `count` neighbouring elements in registers, two bfloat16 in each: what one access moves.
template <class T, int count>
struct alignas(sizeof(T) * count) Vector {
  static constexpr int bytes = sizeof(T) * count;
  using Word = std::conditional_t<bytes % 4 == 0, unsigned, unsigned short>;
  Word words[bytes / sizeof(Word)];
};

template <class T, int count>
__device__ __forceinline__ void to_floats(const Vector<T, count>& vector, float* out) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == sizeof(float)) {
      out[i] = __uint_as_float(vector.words[i]);
    } else if constexpr (count % 2 == 0) {
      // The upper half of a float is a bfloat16.
      const unsigned word = vector.words[i / 2];
      out[i] = __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
    } else {
      out[i] = __uint_as_float(unsigned{vector.words[i]} << 16);
    }
  }
}

template <class T, int count>
__device__ __forceinline__ Vector<T, count> to_vector(const float* in) {
  Vector<T, count> vector;
  if constexpr (sizeof(T) == sizeof(float)) {
#pragma unroll
    for (int i = 0; i < count; ++i) vector.words[i] = __float_as_uint(in[i]);
  } else if constexpr (count % 2 == 0) {
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      vector.words[i] = pack(in[2 * i], in[2 * i + 1]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) vector.words[i] = bits_of(from_float<T>(in[i]));
  }
  return vector;
}

/// x *= scale, RMSNorm's n = x / rms(x). With round_before_weight n is rounded to T, as Hugging
/// Face does before the product with the norm's weight.
template <class T, int count>
__device__ __forceinline__ void normalise(float (&x)[count],
                                          float scale,
                                          bool round_before_weight) {
#pragma unroll
  for (int i = 0; i < count; ++i) x[i] *= scale;
  if (std::is_same_v<T, bfloat16> && round_before_weight) to_floats(to_vector<T, count>(x), x);
}

/// Elements of T in one access when `count` are read: the largest power of two of at most 16 bytes
/// that divides `count`.
template <class T, int count>
constexpr int vector_width = [] {
  int width = 16 / sizeof(T);
  while (count % width != 0) width /= 2;
  return width;
}();

/// Bytes of one access when vectors of `count` elements are read: their addresses are multiples of
/// it.
template <class T>
constexpr int64_t access_bytes(int64_t count) {
  return std::min<int64_t>(16, count * int64_t{sizeof(T)});
}

/// Loads `count` neighbouring elements in as few accesses as possible. p is aligned to one access.
template <class T, int count>
__device__ __forceinline__ void load(const T* p, float (&out)[count]) {
  constexpr int width = vector_width<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    to_floats(*reinterpret_cast<const Vector<T, width>*>(p + i), out + i);
  }
}

/// One access through the read-only cache, to memory that the kernel does not write: the compiler
/// may move it before stores.
template <class T, int width>
__device__ __forceinline__ Vector<T, width> load_vector(const T* p) {
  constexpr int bytes = sizeof(T) * width;
  using Word = std::conditional_t<
      bytes == 16,
      uint4,
      std::conditional_t<bytes == 8,
                         uint2,
                         std::conditional_t<bytes == 4, unsigned, unsigned short>>>;
  const Word word = __ldg(reinterpret_cast<const Word*>(p));
  Vector<T, width> vector;
  memcpy(&vector, &word, sizeof vector);
  return vector;
}

/// load() through the read-only cache.
template <class T, int count>
__device__ __forceinline__ void load_input(const T* p, float (&out)[count]) {
  constexpr int width = vector_width<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    to_floats(load_vector<T, width>(p + i), out + i);
  }
}

template <class T, int count>
__device__ __forceinline__ void store(T* p, const float (&in)[count]) {
  constexpr int width = vector_width<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    *reinterpret_cast<Vector<T, width>*>(p + i) = to_vector<T, width>(in + i);
  }
}

template <int count>
__device__ __forceinline__ void fill(float (&out)[count], float value) {
#pragma unroll
  for (int i = 0; i < count; ++i) out[i] = value;
}

/// The sum over a warp, in every lane; in a fixed order.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  }
  return x;
}

/// The sum over `lanes` neighbouring lanes of a warp; `lane` is the caller's. `lanes` is a power of
/// two and divides the first lane's number. All of these lanes must call.
__device__ __forceinline__ float sum_of_lanes(float x, int lanes, int lane) {
  const unsigned first = static_cast<unsigned>(lane / lanes * lanes);
  const unsigned callers = (0xffffffffu >> (warp_size - lanes)) << first;
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(callers, x, distance);
  }
  return x;
}

#ifndef FORGE_CUDA_EMULATION

/// Throws where the kernel before it could not be started: with too much shared memory, say. What
/// goes wrong within a kernel is reported to whoever waits for it.
inline void require_started() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("a CUDA kernel was not started: ") +
                             cudaGetErrorString(error));
}

/// Blocks of a kernel that are resident on the GPU at the same time, at least one.
template <class Kernel>
int64_t resident_blocks(Kernel kernel, int threads) {
  int device = 0, multiprocessors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0);
  return std::max<int64_t>(int64_t{multiprocessors} * resident, 1);
}

/// Starts kernels on a stream: start(kernel, grid x, grid y, threads, arguments…). What tests
/// emulate in its place has the same members.
struct Start {
  cudaStream_t stream;

  template <class Kernel>
  int64_t resident(Kernel kernel, int threads) const {
    return resident_blocks(kernel, threads);
  }
  template <class Kernel, class... Arguments>
  void operator()(
      Kernel kernel, unsigned x, unsigned y, int threads, const Arguments&... arguments) const {
    kernel<<<dim3(x, y), static_cast<unsigned>(threads), 0, stream>>>(arguments...);
    require_started();
  }
};

#endif

/// Blocks that share `count` equal pieces of work when `resident` blocks run at a time: as few as
/// finish in the same number of waves.
inline int64_t balanced_blocks(int64_t count, int64_t resident) {
  const int64_t most = std::max<int64_t>(resident, 1);
  const int64_t waves = std::max<int64_t>((count + most - 1) / most, 1);
  return (count + waves - 1) / waves;
}

}  // namespace forge::ops::cuda
