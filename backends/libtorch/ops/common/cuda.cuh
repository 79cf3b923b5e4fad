#pragma once

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

/// x as it is after being stored as T.
template <class T>
__device__ __forceinline__ float rounded_to(float x) {
  return to_float(from_float<T>(x));
}

/// x as RMSNorm weights it: by the scale of its row, and rounded to T where that comes first.
template <class T>
__device__ __forceinline__ float normalised(float x, float scale, bool round_first) {
  return round_first ? rounded_to<T>(x * scale) : x * scale;
}

template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
  T values[count];
};

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
    const auto pack = *reinterpret_cast<const Pack<T, width>*>(p + i);
#pragma unroll
    for (int j = 0; j < width; ++j) out[i + j] = to_float(pack.values[j]);
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
    const Pack<T, width> pack = read_only<T, width>(p + i);
#pragma unroll
    for (int j = 0; j < width; ++j) out[i + j] = to_float(pack.values[j]);
  }
}

template <class T, int count>
__device__ __forceinline__ void store(T* p, const float (&in)[count]) {
  constexpr int width = elements_of_access<T, count>;
#pragma unroll
  for (int i = 0; i < count; i += width) {
    Pack<T, width> pack;
#pragma unroll
    for (int j = 0; j < width; ++j) pack.values[j] = from_float<T>(in[i + j]);
    *reinterpret_cast<Pack<T, width>*>(p + i) = pack;
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

}  // namespace forge::ops::cuda
