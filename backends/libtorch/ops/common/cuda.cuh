#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/libtorch/ops/common/cuda.h"

/// Small functions of the kernels.
namespace forge::ops::cuda {

constexpr int warp_size = 32;

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

/// `count` elements as the registers that they come in: two of bfloat16 in one.
template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
  static constexpr int bytes = sizeof(T) * count;
  using Word = std::conditional_t<bytes % 4 == 0, unsigned, unsigned short>;
  Word words[bytes / sizeof(Word)];
};

template <class T, int count>
__device__ __forceinline__ void unpack(const Pack<T, count>& pack, float* out) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == sizeof(float)) {
      out[i] = __uint_as_float(pack.words[i]);
    } else if constexpr (count % 2 == 0) {
      // The upper half of a float is a bfloat16.
      const unsigned word = pack.words[i / 2];
      out[i] = __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
    } else {
      out[i] = __uint_as_float(unsigned{pack.words[i]} << 16);
    }
  }
}

template <class T, int count>
__device__ __forceinline__ Pack<T, count> packed(const float* in) {
  Pack<T, count> pack;
  if constexpr (sizeof(T) == sizeof(float)) {
#pragma unroll
    for (int i = 0; i < count; ++i) pack.words[i] = __float_as_uint(in[i]);
  } else if constexpr (count % 2 == 0) {
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(in[2 * i], in[2 * i + 1]);
      memcpy(&pack.words[i], &pair, sizeof pair);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) pack.words[i] = __bfloat16_as_ushort(from_float<T>(in[i]));
  }
  return pack;
}

constexpr float log2_of_e = 1.4426950408889634f;

/// 2^x, to about 2 units in the last place; results below the normal numbers are zeros.
__device__ __forceinline__ float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
/// 1 / (1 + e^-x), as closely.
__device__ __forceinline__ float sigmoid(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(1 + power_of_two(-log2_of_e * x)));
  return out;
}

/// x as RMSNorm weights it: by the scale of its row, and rounded to T where that comes first.
template <class T, int count>
__device__ __forceinline__ void normalise(float (&x)[count], float scale, bool round_first) {
#pragma unroll
  for (int i = 0; i < count; ++i) x[i] *= scale;
  if (std::is_same_v<T, bfloat16> && round_first) unpack(packed<T, count>(x), x);
}

/// Elements of T in an access of at most 16 bytes, for `count` elements: a power of two that
/// divides it.
template <class T, int count>
constexpr int elements_of_access = [] {
  int width = 16 / sizeof(T);
  while (count % width != 0) width /= 2;
  return width;
}();

/// `count` neighbouring elements, in as few accesses as there can be; p must be aligned to one.
template <class T, int count>
__device__ __forceinline__ void load(const T* p, float (&out)[count]) {
  constexpr int width = elements_of_access<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    unpack(*reinterpret_cast<const Pack<T, width>*>(p + i), out + i);
  }
}

/// An access to global memory that the kernel does not write: it may be moved before stores.
template <class T, int width>
__device__ __forceinline__ Pack<T, width> read_only(const T* p) {
  constexpr int bytes = sizeof(T) * width;
  using Word = std::conditional_t<
      bytes == 16,
      uint4,
      std::conditional_t<bytes == 8,
                         uint2,
                         std::conditional_t<bytes == 4, unsigned, unsigned short>>>;
  const Word word = __ldg(reinterpret_cast<const Word*>(p));
  Pack<T, width> pack;
  memcpy(&pack, &word, sizeof pack);
  return pack;
}

/// load() from global memory that the kernel does not write.
template <class T, int count>
__device__ __forceinline__ void load_input(const T* p, float (&out)[count]) {
  constexpr int width = elements_of_access<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    unpack(read_only<T, width>(p + i), out + i);
  }
}

template <class T, int count>
__device__ __forceinline__ void store(T* p, const float (&in)[count]) {
  constexpr int width = elements_of_access<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    *reinterpret_cast<Pack<T, width>*>(p + i) = packed<T, width>(in + i);
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

/// The same over `lanes` neighbouring lanes, a power of two, the first a multiple of it; all of
/// them must call it. `lane` is the caller's.
__device__ __forceinline__ float sum_of_lanes(float x, int lanes, int lane) {
  const unsigned first = static_cast<unsigned>(lane / lanes * lanes);
  const unsigned callers = (0xffffffffu >> (warp_size - lanes)) << first;
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(callers, x, distance);
  }
  return x;
}

/// Blocks of a kernel that the GPU runs at the same time, at least one.
template <class Kernel>
int64_t blocks_at_once(Kernel kernel, int threads) {
  int device = 0, multiprocessors = 0, resident = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0);
  return std::max<int64_t>(int64_t{multiprocessors} * resident, 1);
}

/// Blocks for `count` pieces of work of which `at_once` blocks take one in each round: as few as
/// need no more rounds.
inline int64_t blocks_of_rounds(int64_t count, int64_t at_once) {
  const int64_t most = std::max<int64_t>(at_once, 1),
                rounds = std::max<int64_t>((count + most - 1) / most, 1);
  return (count + rounds - 1) / rounds;
}

}  // namespace forge::ops::cuda
