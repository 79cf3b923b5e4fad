#include "backends/libtorch/ops/common/simd.h"

namespace forge::ops {

const char* simd_name() {
#if defined(__x86_64__) && defined(__GNUC__)
  switch (simd::width()) {
    case simd::Width::avx512: return "avx512";
    case simd::Width::avx2: return "avx2";
    case simd::Width::basic: break;
  }
#endif
  return "basic";
}

bool has_bfloat16_instructions() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512bf16") != 0;  // all that have AMX have these too
#else
  return false;
#endif
}

}  // namespace forge::ops
