#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <c10/util/BFloat16.h>

/// A function that with_simd runs must be compiled into each of its versions, so it and what it
/// calls in inner loops are always inlined.
#if defined(__GNUC__)
#define FORGE_INLINE inline __attribute__((always_inline))
#define FORGE_SIMD_BODY __attribute__((always_inline))
#else
#define FORGE_INLINE inline
#define FORGE_SIMD_BODY
#endif

namespace forge::ops {

/// The widest vectors that with_simd uses on this CPU: "avx512", "avx2" or "basic".
const char* simd_name();

/// Whether this CPU multiplies bfloat16 numbers itself.
bool has_bfloat16_instructions();

#if defined(__x86_64__) && defined(__GNUC__)

namespace simd {

enum class Width { basic, avx2, avx512 };

inline Width width() {
  static const Width found =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? Width::avx512
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? Width::avx2
                                                                              : Width::basic;
  return found;
}

template <class Body>
__attribute__((target("avx512f,avx512dq,avx2,fma,prefer-vector-width=512"))) void run_avx512(
    const Body& body) {
  body();
}

template <class Body>
__attribute__((target("avx2,fma"))) void run_avx2(const Body& body) {
  body();
}

}  // namespace simd

/// Runs body(), a lambda marked FORGE_SIMD_BODY, in the version for the widest vectors that the CPU
/// has. The choice depends on the CPU alone, never on timing, so results stay the same bits.
template <class Body>
void with_simd(const Body& body) {
  switch (simd::width()) {
    case simd::Width::avx512: return simd::run_avx512(body);
    case simd::Width::avx2: return simd::run_avx2(body);
    case simd::Width::basic: return body();
  }
}

#else

template <class Body>
void with_simd(const Body& body) {
  body();
}

#endif

/// e^x with a relative error below 2e-7, written so that a loop over it vectorises (Cephes expf:
/// x = n ln 2 + r, a polynomial in r, n put into the exponent). Arguments are clamped to the range
/// in which the result is a normal number.
FORGE_INLINE float fast_exp(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  constexpr float round_to_integer = 12582912.0f;  // 1.5 * 2^23
  const float n = (x * 1.44269504088896341f + round_to_integer) - round_to_integer;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float mantissa = p * (r * r) + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return mantissa * power;
}

FORGE_INLINE double fast_exp(double x) { return std::exp(x); }

/// x as an Out: itself, or the nearest bfloat16 (ties to even), written so that a loop over it
/// vectorises.
template <class Out, class T>
FORGE_INLINE Out rounded(T x) {
  if constexpr (std::is_same_v<Out, c10::BFloat16>) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t no_number = 0x7fc0;  // rounding could carry over into the sign
    return {static_cast<uint16_t>(x == x ? nearest : no_number), c10::BFloat16::from_bits()};
  } else {
    return x;
  }
}

}  // namespace forge::ops
