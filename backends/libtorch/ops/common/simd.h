#pragma once

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

}  // namespace forge::ops
