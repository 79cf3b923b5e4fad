#pragma once

/// Compiles a function for several vector widths; the loader picks the widest that the CPU has.
/// The choice depends on the CPU alone, never on timing, so results stay the same bits. The
/// attribute does not go with templates: a template body is FORGE_INLINE and called from a cloned
/// overload for each type.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FORGE_SIMD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#define FORGE_INLINE inline __attribute__((always_inline))
#else
#define FORGE_SIMD_CLONES
#define FORGE_INLINE inline
#endif
